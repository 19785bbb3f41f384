"""Aliases and gender of entities from Wikidata, fifty a request, kept in SQLite as they arrive.

Our own small client on requests: the API asks for a user agent that tells who is calling, for
``maxlag``, and to be left alone for as long as its Retry-After says
(https://www.mediawiki.org/wiki/API:Etiquette).
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import pandas as pd
import requests

from fluent_mlama.console import UserError, note, progress_bar
from fluent_mlama.files import format_table, parse_json, write_text
from fluent_mlama.patience import Patience, RequestFailed, TryLater, may_pass
from fluent_mlama.records.benchmark import ALIAS_SEPARATOR, join_aliases
from fluent_mlama.translating.checks import clean_characters, is_written_in, simplify
from fluent_mlama.translating.store import open_sqlite, plain_errors

API = "https://www.wikidata.org/w/api.php"
USER_AGENT = "Fluent-mLAMA/1.0 (multilingual knowledge probing; python-requests)"
BATCH = 50
SEX_OR_GENDER = "P21"

_SCHEMA = """
CREATE TABLE IF NOT EXISTS terms (
    uri TEXT NOT NULL, code TEXT NOT NULL, label TEXT, aliases TEXT NOT NULL,
    PRIMARY KEY (uri, code)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS genders (uri TEXT PRIMARY KEY, gender TEXT NOT NULL) WITHOUT ROWID;
"""
_AMONG = "WHERE code IN (SELECT value FROM json_each(?))"
# Terms are kept by Wikidata's code, as they came: a rule that asks for one more code asks for that
# entity again. A label is NULL where Wikidata has no such entity, and '' where the entity has none.
_CODES: dict[str, tuple[str, ...]] = {
    "be": ("be", "be-tarask"),
    "de": ("de", "de-at", "de-ch"),
    "en": ("en", "en-gb", "en-ca", "en-us"),
    "pt": ("pt", "pt-br"),
    "fil": ("tl", "fil"),
    "tl": ("tl", "fil"),
    "nb": ("nb", "no"),
    "no": ("nb", "no"),
    "sr": ("sr", "sr-cyrl", "sr-ec", "sr-latn", "sr-el"),
    "zh": (
        *("zh", "zh-hans", "zh-cn", "zh-sg", "zh-my"),
        *("zh-hant", "zh-tw", "zh-hk", "zh-mo"),
    ),
}
"""Wikidata's codes for a language, the preferred one first, where its own code alone would miss
names.

MediaWiki also falls back to related languages (Ukrainian to Russian); their names are other words,
so they are not here.
"""
MUL = "mul"
"""The code of names that hold in every language without one of its own (Wikidata, Help:Default
values for labels and aliases). Editors remove labels that repeat it.
"""

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


class _Term(NamedTuple):
    """Label ("" for none) and aliases that an entity has under one of Wikidata's codes."""

    code: str
    label: str
    aliases: tuple[str, ...]


class NameSource(Protocol):
    """What knows the names of entities: ``Wikidata``, or anything else with this method."""

    def names(self, uris: Sequence[str], language: str) -> Mapping[str, Names]: ...


class Wikidata:
    """store: the SQLite file of what was fetched; api: another address (a stand-in); refresh: ask
    again for everything once.
    """

    def __init__(
        self,
        store: Path,
        *,
        api: str = API,
        user_agent: str = USER_AGENT,
        patience: Patience | None = None,
        refresh: bool = False,
    ) -> None:
        self._store, self._api, self._refresh = store, api, refresh
        self._patience = patience or Patience(per_second=2.0, longest_wait=60.0)
        self._session = requests.Session()
        self._session.headers["User-Agent"] = user_agent
        self._connection = open_sqlite(store, _SCHEMA)

    def close(self) -> None:
        self._connection.close()
        self._session.close()

    def names(self, uris: Sequence[str], language: str) -> dict[str, Names]:
        """uri -> what it is called in ``language``. English is fetched along, so that its labels
        can be told apart.

        Tells how many labels are not from the language's own code, and how many could not be used.
        """
        codes, fetched = _codes(language), tuple(dict.fromkeys((*_codes(language), *_codes("en"))))
        complete = f"SELECT uri FROM terms {_AMONG} GROUP BY uri HAVING COUNT(*) = {len(codes)}"
        missing = self._missing(uris, complete, json.dumps(codes))
        # A kill may come between two codes: ``complete`` asks for that entity again.
        for uri, entity in self._entities(missing, "labels|aliases", fetched):
            rows = [(uri, code, *_read_term(entity, code)) for code in fetched]
            self._keep("INSERT OR REPLACE INTO terms VALUES (?,?,?,?)", rows)
        terms = self._terms(codes)
        chosen = {uri: _choose(terms.get(uri) or (), language) for uri in uris}
        _tell_fallbacks({uri: code for uri, (_, code) in chosen.items()}, terms, language)
        return {uri: names for uri, (names, _) in chosen.items()}

    def genders(self, uris: Sequence[str]) -> dict[str, str]:
        """uri -> English label of its sex or gender (P21), for the entities that have one."""
        for uri, entity in self._entities(self._missing(uris, "SELECT uri FROM genders"), "claims"):
            gender = _best_value(_mapping(entity.get("claims")).get(SEX_OR_GENDER))
            self._keep("INSERT OR REPLACE INTO genders VALUES (?,?)", [(uri, gender)])
        with plain_errors(self._store):
            kept = dict(
                self._connection.execute(
                    "SELECT uri, gender FROM genders WHERE gender != ''"
                ).fetchall()
            )
        values = {uri: kept[uri] for uri in uris if uri in kept}
        labels = self.names(sorted(set(values.values())), "en")
        return {uri: labels[value].label or value for uri, value in values.items()}

    def _aliases(self, kept: str) -> tuple[str, ...]:
        try:
            return tuple(map(str, parse_json(kept, str(self._store))))
        except (ValueError, TypeError):
            raise UserError(
                f"store {self._store} is damaged (aliases {kept:.40}): move it away, or give"
                " another --store"
            ) from None

    def _terms(self, codes: Sequence[str]) -> dict[str, list[_Term] | None]:
        """uri -> its terms in the order of ``codes``; None where Wikidata has no such entity."""
        query = f"SELECT uri, code, label, aliases FROM terms {_AMONG}"
        with plain_errors(self._store):
            rows = self._connection.execute(query, [json.dumps(codes)]).fetchall()
        found: dict[str, list[_Term] | None] = {}
        for uri, code, label, aliases in sorted(rows, key=lambda row: codes.index(row[1])):
            if label is None:
                found[uri] = None
            elif (terms := found.setdefault(uri, [])) is not None:
                terms.append(_Term(code, label, self._aliases(aliases)))
        return found

    def _missing(self, uris: Sequence[str], query: str, *parameters: str) -> list[str]:
        """The Wikidata ids to ask for: unless ``refresh``, those that ``query`` does not find."""
        wrong = [uri for uri in dict.fromkeys(uris) if not re.fullmatch(r"Q[1-9][0-9]*", uri)]
        if wrong:
            note(
                f"{len(wrong)} ids are not Wikidata's (the first: '{wrong[0]}'); they get no names"
            )
        with plain_errors(self._store):
            kept = (
                set()
                if self._refresh
                else {row[0] for row in self._connection.execute(query, parameters)}
            )
        return [uri for uri in dict.fromkeys(uris) if uri not in kept and uri not in wrong]

    def _keep(self, statement: str, rows: Sequence[tuple[str | None, ...]]) -> None:
        with plain_errors(self._store):
            self._connection.executemany(statement, rows)

    def _entities(
        self, uris: Sequence[str], props: str, codes: Sequence[str] = ()
    ) -> Iterator[tuple[str, dict[str, Any]]]:
        """Each uri with its entity, {} if none, under the id asked for even if it redirects."""
        with progress_bar(total=len(uris), unit="entities", label="Wikidata") as bar:
            for start in range(0, len(uris), BATCH):
                batch = list(uris[start : start + BATCH])
                try:
                    found = self._ask(batch, props, codes)
                except RequestFailed as fault:
                    raise UserError(
                        f"Wikidata is out of reach ({fault}); what was fetched is kept: run the"
                        " same command again"
                    ) from fault
                for uri in batch:
                    yield uri, found.get(uri, {})
                bar.update(len(batch))

    def _ask(self, uris: list[str], props: str, codes: Sequence[str]) -> dict[str, dict[str, Any]]:
        """One batch: asked-for id -> entity. Unknown ids are left out and the rest asked again."""
        # The service refuses a whole batch for one deleted id, and names only the first.
        while uris:
            parameters = {
                "action": "wbgetentities", "format": "json", "formatversion": "2", "maxlag": "5",
                "ids": "|".join(uris), "props": props, "languages": "|".join(codes) or None,
            }  # fmt: skip
            answer = self._patience.persist("Wikidata", partial(self._request, parameters))
            error = answer.get("error")
            if not error:
                return _by_asked_id(answer["entities"], uris)
            if error.get("code") != "no-such-entity" or error.get("id") not in uris:
                raise UserError(
                    f"Wikidata refuses the question ({error.get('code')}):"
                    f" {str(error.get('info', ''))[:200]}"
                )
            uris = [uri for uri in uris if uri != error["id"]]
        return {}

    def _request(self, parameters: Mapping[str, str | None]) -> dict[str, Any]:
        try:
            response = self._session.get(
                self._api, params=parameters, timeout=self._patience.timeout
            )
        except requests.RequestException as error:
            raise TryLater(f"no answer ({type(error).__name__})") from None
        if response.status_code == 403:
            raise UserError(
                "Wikidata refuses this client (HTTP 403): give a user agent that names you, with an"
                " address"
            )
        if may_pass(response.status_code):
            raise TryLater(f"HTTP {response.status_code}", response.headers)
        if response.status_code != 200:
            raise UserError(
                f"Wikidata refuses the question (HTTP {response.status_code}): check the address"
                f" {self._api}"
            )
        try:
            answer = dict(parse_json(response.content, self._api))
        except (ValueError, TypeError):
            raise TryLater("unreadable answer", response.headers) from None
        code = _mapping(answer.get("error")).get("code")
        if code in _LAGGING or (code is None and not isinstance(answer.get("entities"), dict)):
            raise TryLater(code or "unreadable answer (no entities)", response.headers)
        return answer


def alias_cell(names: Names, lang: str, label: str = "") -> str:
    """The names other than ``label`` as an ``aliases`` cell, each once, simplified if Chinese."""
    simple = dict.fromkeys(
        simplify(name, lang).replace(ALIAS_SEPARATOR, " ").strip() for name in names.all
    )
    return join_aliases([name for name in simple if name and name != label])


def write_genders(genders: dict[str, str], path: Path) -> None:
    """Write ``gender.tsv``: columns ``p`` (bare id) and ``genderLabel``, sorted by id."""
    rows = sorted(genders.items(), key=lambda pair: int(pair[0][1:]))
    write_text(path, format_table(pd.DataFrame(rows, columns=["p", "genderLabel"], dtype=str)))


def _by_asked_id(entities: Mapping[str, Any], uris: Sequence[str]) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    for key, entity in entities.items():
        if not isinstance(entity, dict) or "missing" in entity:
            continue
        asked = entity.get("redirects", {}).get("from", key)
        for uri in {key, asked} & set(uris):
            found[uri] = entity
    return found


def _codes(language: str) -> tuple[str, ...]:
    return (*_CODES.get(language, (language,)), MUL)


def _read_term(entity: dict[str, Any], code: str) -> tuple[str | None, str]:
    """Label and aliases (a JSON list) as they are kept."""
    label = _mapping(_mapping(entity.get("labels")).get(code)).get("value", "") if entity else None
    return label, json.dumps(
        [alias["value"] for alias in _mapping(entity.get("aliases")).get(code, [])]
    )


def _in_language(term: _Term, language: str) -> _Term:
    """The term with clean names; those of ``mul`` only in a script of the language."""
    names = [
        " ".join(clean_characters(name, language).split()) for name in (term.label, *term.aliases)
    ]
    label, *aliases = (
        name if term.code != MUL or is_written_in(name, language) else "" for name in names
    )
    return _Term(term.code, label, tuple(aliases))


def _choose(kept: Sequence[_Term], language: str) -> tuple[Names, str]:
    """The names, and the code that the label is from ("" for none): the first that has one.

    The labels of the language's other codes are aliases. The label of ``mul`` is not: the
    language's own overrides it.
    """
    terms = [_in_language(term, language) for term in kept]
    chosen = next((term for term in terms if term.label), _Term("", "", ()))
    names = [term.label for term in terms if term.code != MUL]
    names += [alias for term in terms for alias in term.aliases]
    aliases = dict.fromkeys(name for name in names if name and name != chosen.label)
    return Names(chosen.label, tuple(aliases)), chosen.code


def _tell_fallbacks(
    codes: Mapping[str, str], terms: Mapping[str, Sequence[_Term] | None], language: str
) -> None:
    """What a person would not expect of the labels. codes: uri -> the code that its label is from,
    "" for none.
    """
    counts = Counter(code for code in codes.values() if code and code != _codes(language)[0])
    if counts:
        told = ", ".join(f"{count} '{code}'" for code, count in counts.most_common())
        note(
            f"Wikidata: {sum(counts.values())} of {len(codes)} labels in '{language}' are from"
            f" other codes: {told}"
        )
    nameless = [uri for uri, code in codes.items() if not code]
    foreign = [term.label for uri in nameless for term in terms.get(uri) or () if term.label]
    if foreign:
        note(
            f"Wikidata: {len(foreign)} of {len(codes)} entities have no label in '{language}', and"
            f" their label for all languages ('{MUL}') is in another script (the first:"
            f" {foreign[0]}); it is not used"
        )
    gone = [uri for uri in codes if terms.get(uri, ()) is None]
    if gone:
        note(
            f"Wikidata: {len(gone)} of {len(codes)} entities are not there, perhaps deleted (the"
            f" first: {gone[0]})"
        )


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
