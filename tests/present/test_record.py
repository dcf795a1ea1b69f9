"""The entry for the registry of deployments: the registry's own fields, filled in by the release and the operator."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import yaml

from crowdgram import Ledger, Quantity
from crowdgram.errors import InvalidArgument, UnreadableSource
from crowdgram.present.record import read_operator, record
from crowdgram.privacy import Plan, opaque_cost

from ..results.synthetic import grouped, made
from ..results.test_reach import made as reach_of
from ..test_escaping import HOSTILE, steering

# The fields of the registry's schema (opendp/deployments-registry-data, schemas/deployments-schema.yaml, October 2026),
# which allows no others, and those of its values that are one of a few.
SCHEMA = {
    "basic": "name data_curators description intended_use data_product_type data_product_region data_product_sector "
    "publication_date",
    "dp_variant": "variant_name data_domain unprotected_quantities",
    "privacy_loss": "privacy_unit privacy_unit_details number_of_privacy_units privacy_parameters "
    "privacy_parameters_details",
    "deployment_model": "model_name model_name_details trust_assumptions actors release_type release_type_details "
    "data_source_type data_source_type_details access_type access_type_details",
    "implementation": "preprocessing_and_hyperparameter_tuning mechanisms composition post_processing justification "
    "utility additional_information",
    "administrative": "evidence_sources status registry_authors tier",
}
CHOICES = {
    "data_product_type": {"Summary statistics"},
    "variant_name": {"Pure DP", "Approximate DP"},
    "model_name": {"Central"},
    "release_type": {"One release", "Many releases"},
    "data_source_type": {"Static", "Dynamic", ""},
    "access_type": {"Non-interactive"},
    "status": {"Draft"},
}


def release(**changes):
    one = made(np.array([0.5, 0.3, 0.2]), np.full(3, 1e-3), "abc", ("page",))
    return replace(one, users=Quantity(149.6, 140.0, 160.0, 0.95), parameters={"released_on": "2026-11-17"}, **changes)


@pytest.mark.parametrize("result", [release(), grouped(), reach_of()], ids=["release", "groups", "reach"])
def test_the_fields_are_those_of_the_registry(result):
    found = yaml.safe_load(record(result))
    assert list(found) == ["url_slug", "deployment"]
    assert {key: " ".join(value) for key, value in found["deployment"].items()} == SCHEMA
    for section in found["deployment"].values():
        for field, value in section.items():
            assert field not in CHOICES or value in CHOICES[field]
    assert found["deployment"]["administrative"]["tier"] == 3


def test_what_the_release_knows_is_there():
    text = record(release(), digest="ab" * 32)
    found = yaml.safe_load(text)["deployment"]
    assert found["basic"]["publication_date"] == "2026-11-17"
    assert found["dp_variant"]["variant_name"] == "Approximate DP"
    assert found["privacy_loss"]["number_of_privacy_units"] == 150
    assert found["privacy_loss"]["privacy_parameters"] == {"epsilon": 1.0, "delta": 1e-6}
    details = found["privacy_loss"]["privacy_parameters_details"]
    for said in ("mu=0.107374", "epsilon=0, the sum", "At delta=1e-05, all draws together have epsilon="):
        assert said in details
    assert "Discrete Gaussian noise, 1 draw: counts." in found["implementation"]["mechanisms"]
    assert "Bias of clipping" in found["implementation"]["utility"]
    assert "Small items" in found["implementation"]["utility"]
    assert "ab" * 32 in found["implementation"]["additional_information"]
    assert "    intended_use: ''  # for you: what it is for\n" in text
    assert "# Written by Crowdgram from the release itself. 11 fields are left for you" in text
    assert yaml.safe_load(record(reach_of()))["deployment"]["privacy_loss"]["privacy_parameters"] == {"epsilon": 1.0}


def test_an_operator_fills_in_the_rest(tmp_path):
    (tmp_path / "o.yaml").write_text(
        "deployment:\n  basic:\n    name: Visits\n    data_curators:\n      - "
        "{data_curator_name: A, data_curator_type: "
        "Industry}\n    intended_use: ''\n  implementation:\n    justification: Because.\n"
    )
    text = record(release(), operator=read_operator(tmp_path / "o.yaml"))
    found = yaml.safe_load(text)["deployment"]
    assert found["basic"]["name"] == "Visits"
    assert found["basic"]["data_curators"] == [{"data_curator_name": "A", "data_curator_type": "Industry"}]
    assert found["implementation"]["justification"] == "Because."
    assert "intended_use: ''  # for you" in text
    assert "9 fields are left for you" in text


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("deployment: {basic: {title: x}}", "'deployment.basic.title' is no field"),
        ("deployment: {basic: x}", "'deployment.basic' needs fields of its own"),
        ("deployment: {privacy_loss: {privacy_parameters: {epsilon: 0.1}}}", "is what the release says itself"),
        ("x", "needs fields of the record"),
        ("", "needs fields of the record"),
        ("a: [", "needs to be YAML"),
        ("!!python/object/apply:os.system ['id']", "needs to be YAML"),
    ],
)
def test_operators_that_are_refused(tmp_path, text, said):
    (tmp_path / "o.yaml").write_text(text)
    with pytest.raises((InvalidArgument, UnreadableSource), match=said):
        record(release(), operator=read_operator(tmp_path / "o.yaml"))
    with pytest.raises(UnreadableSource, match="cannot be read"):
        read_operator(tmp_path / "none.yaml")


def test_the_ledger_tells_of_periods(tmp_path):
    one = release()
    one = replace(one, parameters={**one.parameters, "period": "2026-11"})
    Ledger.create(tmp_path / "l", 3.0, 1e-5, every="month", epsilon_overall=9.0)
    ledger = Ledger.open(tmp_path / "l", period="2026-11", period_column="day")
    ledger.charge(Plan((opaque_cost(one.guarantee),)), one.guarantee, mechanism="gaussian", weight="rows")
    found = yaml.safe_load(record(one, ledger=ledger))["deployment"]
    assert found["privacy_loss"]["privacy_unit"] == "User-month"
    assert "overall limit of epsilon=9" in found["privacy_loss"]["privacy_unit_details"]
    assert found["deployment_model"]["release_type"] == "Many releases"
    assert found["deployment_model"]["data_source_type"] == "Dynamic"
    assert "2026-11: " in found["implementation"]["composition"]
    assert "period 2026-11" in yaml.safe_load(record(one))["deployment"]["implementation"]["composition"]


@pytest.mark.slow
def test_names_steer_nothing_and_are_one_text():
    for name in HOSTILE:
        text = record(replace(release(), item_columns=(name,), mechanism=name, versions={name: name}))
        assert not steering(text)
        assert {key: " ".join(value) for key, value in yaml.safe_load(text)["deployment"].items()} == SCHEMA
