"""Aliases and gender of entities from Wikidata, fifty a request, kept in SQLite as they arrive.

Our own small client on requests: the API asks for a user agent that tells who is calling, for ``maxlag``, and to be left
alone for as long as its Retry-After says (https://www.mediawiki.org/wiki/API:Etiquette).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import pandas as pd
import requests

from fluent.console import UserError, note, progress_bar
from fluent.json_text import parse_json
from fluent.records.atomic import write_text
from fluent.records.benchmark import ALIAS_SEPARATOR, join_aliases
from fluent.records.table import format_table
from fluent.translating.cleaning import simplify
from fluent.translating.patience import Pace, Patience, RowFault, TryLater, retry_after
from fluent.translating.sqlite import open_sqlite, plain_errors

API = "https://www.wikidata.org/w/api.php"
USER_AGENT = "Fluent-mLAMA/1.0 (multilingual knowledge probing; python-requests)"
BATCH = 50
SEX_OR_GENDER = "P21"

_SCHEMA = """
CREATE TABLE IF NOT EXISTS names (uri TEXT NOT NULL, language TEXT NOT NULL, label TEXT NOT NULL, aliases TEXT NOT NULL,
    PRIMARY KEY (uri, language)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS genders (uri TEXT PRIMARY KEY, gender TEXT NOT NULL) WITHOUT ROWID;
"""
_CODES = {
    "zh": ("zh", "zh-hans", "zh-cn"), "nb": ("nb",), "no": ("nb",), "fil": ("tl", "fil"), "sr": ("sr", "sr-ec"), "be": ("be", "be-tarask"),
}  # fmt: skip
"""Wikidata's language codes where mLAMA's alone would miss names."""

_GONE = "no-such-entity"
_LAGGING = {"maxlag", "ratelimited", "readonly"}


@dataclass(frozen=True, slots=True)
class Names:
    """What an entity is called in one language: "" and () where Wikidata has nothing."""

    label: str = ""
    aliases: tuple[str, ...] = ()

    @property
    def all(self) -> tuple[str, ...]:
        """Label, then aliases, each once."""
        return tuple(dict.fromkeys(name for name in (self.label, *self.aliases) if name))


class NameSource(Protocol):
    """What knows the names of entities: ``Wikidata``, or anything else with this method."""

    def names(self, uris: Sequence[str], language: str) -> Mapping[str, Names]: ...


class Wikidata:
    """store: the SQLite file of what was fetched; api: another address (a stand-in); refresh: ask again for everything once."""

    def __init__(
        self, store: Path, *, api: str = API, user_agent: str = USER_AGENT, patience: Patience | None = None, refresh: bool = False
    ) -> None:
        self._store, self._api, self._refresh = store, api, refresh
        self._patience = patience or Patience(per_second=2.0, longest_wait=60.0)
        self._pace = Pace(self._patience.per_second)
        self._session = requests.Session()
        self._session.headers["User-Agent"] = user_agent
        self._connection = open_sqlite(store, _SCHEMA)

    def close(self) -> None:
        self._connection.close()
        self._session.close()

    def names(self, uris: Sequence[str], language: str) -> dict[str, Names]:
        """uri -> what it is called in this language (English is fetched along, so that labels can be told apart)."""
        wanted = tuple(dict.fromkeys((language, "en")))
        missing = self._missing(uris, "SELECT uri FROM names WHERE language=?", language)
        codes = [code for one in wanted for code in _CODES.get(one, (one,))]
        for uri, entity in self._entities(missing, "labels|aliases", "|".join(codes)):
            for one in wanted:
                found = _names(entity, _CODES.get(one, (one,)))
                self._keep("INSERT OR REPLACE INTO names VALUES (?,?,?,?)", uri, one, found.label, json.dumps(found.aliases))
        with plain_errors(self._store):
            rows = self._connection.execute("SELECT uri, label, aliases FROM names WHERE language=?", (language,)).fetchall()
        kept = {uri: Names(label, self._aliases(aliases)) for uri, label, aliases in rows}
        return {uri: kept.get(uri, Names()) for uri in uris}

    def genders(self, uris: Sequence[str]) -> dict[str, str]:
        """uri -> English label of its sex or gender (P21), for the entities that have one."""
        missing = self._missing(uris, "SELECT uri FROM genders")
        for uri, entity in self._entities(missing, "claims", ""):
            self._keep("INSERT OR REPLACE INTO genders VALUES (?,?)", uri, _best_value(_mapping(entity.get("claims")).get(SEX_OR_GENDER)))
        with plain_errors(self._store):
            kept = dict(self._connection.execute("SELECT uri, gender FROM genders WHERE gender != ''").fetchall())
        values = {uri: kept[uri] for uri in uris if uri in kept}
        labels = self.names(sorted(set(values.values())), "en")
        return {uri: labels[value].label or value for uri, value in values.items()}

    def _aliases(self, kept: str) -> tuple[str, ...]:
        try:
            return tuple(map(str, parse_json(kept, str(self._store))))
        except (ValueError, TypeError):
            raise UserError(f"store {self._store} is damaged (aliases {kept:.40}): move it away, or give another --store") from None

    def _missing(self, uris: Sequence[str], query: str, *parameters: str) -> list[str]:
        wrong = [uri for uri in dict.fromkeys(uris) if not re.fullmatch(r"Q[1-9]\d*", uri)]
        if wrong:
            note(f"{len(wrong)} ids are not Wikidata's (the first: '{wrong[0]}'); they get no aliases")
        with plain_errors(self._store):
            kept = set() if self._refresh else {row[0] for row in self._connection.execute(query, parameters)}
        return [uri for uri in dict.fromkeys(uris) if uri not in kept and uri not in wrong]

    def _keep(self, statement: str, *values: str) -> None:
        with plain_errors(self._store):
            self._connection.execute(statement, values)

    def _entities(self, uris: Sequence[str], props: str, languages: str) -> Iterator[tuple[str, dict[str, Any]]]:
        """Each uri with its entity ({} where there is none), under the id that was asked for even if it redirects."""
        with progress_bar(total=len(uris), unit="entities", label="Wikidata") as bar:
            for start in range(0, len(uris), BATCH):
                batch = list(uris[start : start + BATCH])
                try:
                    found = self._patience.persist("Wikidata", partial(self._ask, batch, props, languages))
                except RowFault as fault:
                    raise UserError(f"Wikidata is out of reach ({fault}); what was fetched is kept: run the same command again") from fault
                for uri in batch:
                    yield uri, found.get(uri, {})
                bar.update(len(batch))

    def _ask(self, uris: list[str], props: str, languages: str) -> dict[str, dict[str, Any]]:
        """One batch: asked-for id -> entity. An id that the service knows nothing of is left out and the rest asked again."""
        while uris:
            self._pace.wait()
            parameters = {
                "action": "wbgetentities", "format": "json", "formatversion": "2", "maxlag": "5", "ids": "|".join(uris), "props": props,
            }  # fmt: skip
            if languages:
                parameters["languages"] = languages
            answer = self._request(parameters)
            error = answer.get("error")
            if not error:
                return _by_asked_id(answer.get("entities"), uris)
            if error.get("code") != _GONE or error.get("id") not in uris:
                raise UserError(f"Wikidata refuses the question ({error.get('code')}): {str(error.get('info', ''))[:200]}")
            uris = [uri for uri in uris if uri != error["id"]]
        return {}

    def _request(self, parameters: dict[str, str]) -> dict[str, Any]:
        timeout = (self._patience.connect, self._patience.read)
        try:
            response = self._session.get(self._api, params=parameters, timeout=timeout)
        except requests.RequestException as error:
            raise TryLater(f"no answer ({type(error).__name__})") from None
        after = retry_after(response.headers.get("Retry-After"))
        if response.status_code == 403:
            raise UserError("Wikidata refuses this client (HTTP 403): give a user agent that names you, with an address")
        if response.status_code != 200:
            raise TryLater(f"HTTP {response.status_code}", after)
        try:
            answer = parse_json(response.content, self._api)
        except ValueError:
            raise TryLater("unreadable answer", after) from None
        if not isinstance(answer, dict):
            raise TryLater("unreadable answer", after)
        code = answer.get("error", {}).get("code")
        if code in _LAGGING:
            raise TryLater(str(code), after)
        return answer


def alias_cell(names: Names, lang: str, label: str = "") -> str:
    """The names other than ``label`` as a benchmark's ``aliases`` cell, each once, Chinese ones in simplified script."""
    simple = dict.fromkeys(simplify(name, lang).replace(ALIAS_SEPARATOR, " ").strip() for name in names.all)
    return join_aliases([name for name in simple if name and name != label])


def write_genders(genders: dict[str, str], path: Path) -> None:
    """Write ``gender.tsv``: columns ``p`` (bare id) and ``genderLabel``, sorted by id."""
    rows = sorted(genders.items(), key=lambda pair: int(pair[0][1:]))
    write_text(path, format_table(pd.DataFrame(rows, columns=["p", "genderLabel"], dtype=str)))


def _by_asked_id(entities: Any, uris: Sequence[str]) -> dict[str, dict[str, Any]]:
    if not isinstance(entities, dict):
        raise TryLater("unreadable answer (no entities)")
    found: dict[str, dict[str, Any]] = {}
    for key, entity in entities.items():
        if not isinstance(entity, dict) or "missing" in entity:
            continue
        asked = entity.get("redirects", {}).get("from", key)
        for uri in {key, asked} & set(uris):
            found[uri] = entity
    return found


def _names(entity: dict[str, Any], codes: Sequence[str]) -> Names:
    labels, aliases = _mapping(entity.get("labels")), _mapping(entity.get("aliases"))
    spelt = [labels[code]["value"] for code in codes if code in labels]
    more = [alias["value"] for code in codes for alias in aliases.get(code, [])]
    return Names(spelt[0] if spelt else "", tuple(dict.fromkeys(name for name in (*spelt[1:], *more) if name not in spelt[:1])))


def _mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}  # an empty one comes as []


def _best_value(claims: Any) -> str:
    """The id of the preferred value, else of the first normal one; "" where there is none."""
    for rank in ("preferred", "normal"):
        for claim in claims if isinstance(claims, list) else []:
            if claim.get("rank", "normal") == rank:
                value = claim.get("mainsnak", {}).get("datavalue", {}).get("value", {})
                if isinstance(value, dict) and value.get("id"):
                    return str(value["id"])
    return ""
