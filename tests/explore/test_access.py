"""Who may talk to the page."""

# ruff: noqa: E402 (without the extra, these modules cannot be imported, and the tests are skipped)
from __future__ import annotations

import json
import re

import pytest

pytest.importorskip("starlette", reason="the extra explore is not installed: pip install 'crowdgram[explore]'")
testclient = pytest.importorskip("starlette.testclient", reason="httpx is not installed: pip install httpx")

from crowdgram.explore.access import KEY, MOST_BYTES, Access
from crowdgram.explore.app import make_app
from crowdgram.explore.jobs import read_job
from crowdgram.explore.work import Made, Work

PORT = 8123
FORM = {"table": "nowhere.parquet", "user": "u", "item": "i", "epsilon": "1"}


@pytest.fixture
def access():
    return Access(PORT)


@pytest.fixture
def client(access):
    return testclient.TestClient(make_app(access), base_url=access.origin)


@pytest.fixture
def admitted(access, client):
    page = client.get("/", params={"token": access.token})
    assert page.status_code == 200
    client.headers[KEY] = key_in(page.text)
    return client


def key_in(page):
    return re.search(r'<meta name="crowdgram-key" content="([\w-]{43})">', page)[1]


def post(client, path="/copies", **headers):
    return client.post(path, json=FORM, headers={"Origin": f"http://127.0.0.1:{PORT}", **headers})


def test_without_the_token_there_is_nothing(client):
    for path in ("/", "/assets/explore.js", "/made", "/releases/1", "/?token=", "/?token=é", "/nowhere"):
        answer = client.get(path)
        assert answer.status_code == 403
        assert "It works once" in answer.text
        assert "set-cookie" not in answer.headers
    assert post(client).status_code == 403


def test_the_token_works_once_and_leaves_a_strict_cookie(access, client):
    first = client.get("/", params={"token": access.token})
    assert first.status_code == 200
    cookie = first.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=Strict" in cookie
    assert access.token not in cookie
    assert client.get("/").status_code == 200
    assert post(client, **{KEY: key_in(first.text)}).status_code == 200
    client.cookies.clear()
    assert post(client, **{KEY: key_in(first.text)}).status_code == 403
    assert client.get("/", params={"token": access.token}).status_code == 403
    assert client.get("/").status_code == 403


def test_the_usual_port_is_left_out_as_browsers_leave_it_out():
    access = Access(80)
    client = testclient.TestClient(make_app(access), base_url="http://127.0.0.1")
    page = client.get("/", params={"token": access.token}, headers={"Host": "127.0.0.1"})
    assert page.status_code == 200
    headers = {"Host": "127.0.0.1", "Origin": "http://127.0.0.1", KEY: key_in(page.text)}
    assert client.post("/copies", json=FORM, headers=headers).status_code == 200


def test_a_wrong_token_does_not_use_up_the_right_one(access, client):
    assert client.get("/", params={"token": access.token[:-1]}).status_code == 403
    assert client.get("/", params={"token": [access.token, access.token]}).status_code == 403
    assert client.post(f"/?token={access.token}", json={}, headers={"Origin": access.origin}).status_code == 403
    assert client.get("/", params={"token": access.token}).status_code == 200


@pytest.mark.parametrize(
    "host", ["evil.example", f"evil.example:{PORT}", "127.0.0.1", f"127.0.0.1:{PORT + 1}", f"localhost:{PORT}", ""]
)
def test_another_host_is_refused_with_the_cookie_and_with_the_token(access, admitted, host):
    assert admitted.get("/", headers={"Host": host}).status_code == 421
    assert post(admitted, Host=host).status_code == 421
    fresh = Access(PORT)
    other = testclient.TestClient(make_app(fresh), base_url=fresh.origin)
    assert other.get("/", params={"token": fresh.token}, headers={"Host": host}).status_code == 421
    assert other.get("/", params={"token": fresh.token}).status_code == 200  # it was not used up


@pytest.mark.parametrize("origin", ["null", "http://evil.example", f"http://localhost:{PORT}", "http://127.0.0.1"])
def test_another_origin_is_refused(admitted, origin):
    assert post(admitted, Origin=origin).status_code == 403


def test_a_post_needs_an_origin_and_json(access, admitted):
    assert admitted.post("/copies", json=FORM).status_code == 403
    assert post(admitted, **{"Sec-Fetch-Site": "cross-site"}).status_code == 403
    assert post(admitted, **{"Sec-Fetch-Site": "same-origin"}).status_code == 200
    assert post(admitted, **{"Content-Type": "text/plain"}).status_code == 415
    assert post(admitted, **{"Content-Length": str(MOST_BYTES + 1)}).status_code == 413
    own = {"Origin": access.origin, "Content-Type": "application/json"}
    for body in ("", "[]", "no json", "1"):
        assert admitted.post("/copies", content=body, headers=own).status_code == 400


def test_nothing_acts_by_get_and_other_sites_may_not_load_parts(admitted):
    for path in ("/release", "/check", "/copies", "/columns", "/estimate", "/made"):
        assert admitted.get(path).status_code == 405
    assert admitted.delete("/").status_code == 405
    assert admitted.get("/assets/explore.js", headers={"Sec-Fetch-Site": "same-site"}).status_code == 403
    assert admitted.get("/assets/access.py").status_code == 404
    assert admitted.get("/assets/..%2faccess.py").status_code == 404


def test_every_answer_has_a_strict_policy(admitted):
    for path in ("/", "/nowhere", "/releases/9"):
        headers = admitted.get(path).headers
        assert headers["content-security-policy"].startswith("default-src 'none'; script-src 'self'; style-src 'self'")
        assert "unsafe" not in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["cache-control"] == "no-store"
    page = admitted.get("/").text
    assert "http://" not in page.replace("http://www.w3.org", "")
    assert "https://" not in page
    assert "<script>" not in page
    assert "style=" not in page


def test_the_token_is_compared_in_constant_time(access, monkeypatch):
    import hmac

    seen = []
    real = hmac.compare_digest
    monkeypatch.setattr(hmac, "compare_digest", lambda one, two: seen.append(two) or real(one, two))  # a watch
    assert not access.opens("x")
    assert not access.knows("crowdgram-8123=x")
    assert not access.fits("é")
    assert len(seen) == 3


def test_a_cookie_that_another_port_has_seen_gives_nothing_away(access, admitted):
    """Browsers send it to every server on this machine. Without the key, there is the empty page, and no release."""
    work = Work()
    work.made.append(Made(1, "name", read_job(FORM), "a report", "{}", ()))
    thief = testclient.TestClient(make_app(access, work), base_url=access.origin)
    thief.cookies.update(admitted.cookies)
    page = thief.get("/")
    assert page.status_code == 200
    assert access.key not in page.text
    for path in ("/made", "/release", "/check", "/copies", "/columns", "/estimate"):
        for more in ({}, {KEY: ""}, {KEY: access.token}, {KEY: thief.cookies[access.cookie]}):
            answer = post(thief, path, **more)
            assert answer.status_code == 403
            assert "lost the key" in answer.text
    assert thief.get("/releases/1").status_code == 404
    assert post(thief, "/made", **{KEY: access.key}).json()["made"][0]["at"] == "/releases/name"
    thief.cookies.clear()
    assert thief.get("/releases/name").status_code == 403  # and a name without the cookie gives nothing either


def test_names_of_releases_cannot_be_guessed_and_the_key_is_told_once(access, admitted):
    assert access.key not in admitted.get("/").text
    assert len({access.key, access.token, Access(PORT).key, Access(PORT).token}) == 4


def test_a_read_by_another_origin_is_refused(access, admitted):
    for origin in ("null", "http://evil.example", "http://127.0.0.1:1"):
        for path in ("/", "/assets/explore.js", "/releases/x"):
            assert admitted.get(path, headers={"Origin": origin}).status_code == 403
    assert admitted.get("/", headers={"Origin": access.origin}).status_code == 200


def test_a_length_that_does_not_hold_is_refused(access, admitted):
    own = {"Origin": access.origin, "Content-Type": "application/json"}
    for more in ({"Transfer-Encoding": "chunked"}, {"Content-Length": "9" * 5000}, {"Content-Length": "+5"}):
        assert admitted.post("/copies", content=json.dumps(FORM), headers={**own, **more}).status_code == 413


def test_what_cannot_be_read_is_a_plain_refusal(access, admitted):
    own = {"Origin": access.origin, "Content-Type": "application/json"}
    assert admitted.post("/copies", content="[" * 200_000, headers=own).status_code == 400
    for field in FORM:
        answer = admitted.post("/copies", content=json.dumps({**FORM, field: "\ud800"}), headers=own)
        assert answer.status_code == 422, field
        assert answer.json()["field"] == field
    assert admitted.get("/releases/" + "9" * 5000).status_code == 404
