"""All cases, program by program."""

from __future__ import annotations

from tests.bad_inputs import (
    cases_comet,
    cases_compare,
    cases_cpopqa,
    cases_data,
    cases_datamodifier,
    cases_dumps,
    cases_exporting,
    cases_grammeval,
    cases_mlama,
    cases_model,
    cases_models,
    cases_ray,
    cases_reader,
    cases_script,
    cases_stats,
    cases_unreadable,
    cases_zhoblimp,
    cases_zhoblimp_models,
)
from tests.bad_inputs.case import Case

_PARTS = (
    cases_script, cases_data, cases_model, cases_models, cases_ray, cases_exporting, cases_reader, cases_datamodifier, cases_stats,
    cases_dumps, cases_compare, cases_grammeval, cases_comet, cases_mlama, cases_zhoblimp, cases_zhoblimp_models, cases_cpopqa,
    cases_unreadable,
)  # fmt: skip

CASES: list[Case] = [case for part in _PARTS for case in part.CASES]
