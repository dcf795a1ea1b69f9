"""Files are written whole or not at all, and over no other file unless that is asked for."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import threading
from dataclasses import replace

import pytest

from crowdgram.errors import UnwritableTarget
from crowdgram.export import write_whole
from crowdgram.results import GroupedRelease, Release

from .test_json_file import made

WRITERS = [Release.save, Release.to_csv, Release.to_parquet, Release.to_html]


@pytest.mark.parametrize("write", WRITERS)
def test_an_empty_path(write):
    with pytest.raises(UnwritableTarget, match="needs to be the name of a file"):
        write(made(), "")


@pytest.mark.parametrize("write", [*WRITERS, *(getattr(GroupedRelease, one.__name__) for one in WRITERS)])
def test_nothing_is_overwritten_unless_it_is_asked_for(write, tmp_path):
    release = replace(made([("a", "x"), ("a", "y"), ("b", "x")]), item_columns=("group", "item"))
    release = GroupedRelease(release) if write.__qualname__.startswith("Grouped") else release
    path = tmp_path / "r"
    path.write_text("what was here")
    with pytest.raises(UnwritableTarget, match=r"exists.*overwrite=True.*--force"):
        write(release, path)
    assert path.read_text() == "what was here"
    write(release, path, overwrite=True)
    assert b"what was here" not in path.read_bytes()
    assert [one.name for one in tmp_path.iterdir()] == ["r"]


def test_a_link_that_leads_nowhere_is_not_overwritten(tmp_path):
    (tmp_path / "r").symlink_to(tmp_path / "none")
    with pytest.raises(UnwritableTarget, match="exists"):
        write_whole(tmp_path / "r", "new")
    assert (tmp_path / "r").is_symlink()
    assert not (tmp_path / "none").exists()


def no_links(*arguments, **more):
    raise PermissionError(1, "Operation not permitted")


@pytest.mark.parametrize("links", [True, False])
def test_of_many_who_write_at_once_one_does(tmp_path, monkeypatch, links):
    if not links:
        monkeypatch.setattr(os, "link", no_links)  # a file system without links
    start, written = threading.Barrier(8), []

    def write(number):
        start.wait()
        with contextlib.suppress(UnwritableTarget):
            write_whole(tmp_path / "x", f"{number}" * 10_000)
            written.append(number)

    threads = [threading.Thread(target=write, args=(number,)) for number in range(8)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert len(written) == 1
    assert (tmp_path / "x").read_text() == f"{written[0]}" * 10_000
    assert [one.name for one in tmp_path.iterdir()] == ["x"]


@pytest.mark.parametrize("broken", ["replace", "fsync"])
@pytest.mark.parametrize("before", ["old", None])
def test_whole_or_not_at_all(tmp_path, monkeypatch, broken, before):
    path = tmp_path / "r.json"
    if before:
        path.write_text(before)

    def full(*arguments):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, broken, full)
    with pytest.raises(UnwritableTarget, match=r"r\.json.*No space left"):
        made().save(path, overwrite=True)
    assert [one.name for one in tmp_path.iterdir()] == (["r.json"] if before else [])
    assert not before or path.read_text() == before


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_without_links_the_name_is_given_back(tmp_path, monkeypatch, error):
    def fails(draft, target):
        assert stat.S_IMODE(os.stat(target).st_mode) == 0o600
        raise error

    monkeypatch.setattr(os, "link", no_links)
    monkeypatch.setattr(os, "replace", fails)
    with pytest.raises((UnwritableTarget, KeyboardInterrupt)):
        made().save(tmp_path / "r.json")
    assert list(tmp_path.iterdir()) == []


def test_an_interrupt_leaves_nothing(tmp_path, monkeypatch):
    def interrupt(*arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", interrupt)  # Ctrl-C at this moment
    with pytest.raises(KeyboardInterrupt):
        made().save(tmp_path / "r.json")
    assert list(tmp_path.iterdir()) == []


def test_what_is_synced_is_all_of_it(tmp_path, monkeypatch):
    sizes = []
    monkeypatch.setattr(os, "fsync", lambda handle: sizes.append(os.fstat(handle).st_size))
    write_whole(tmp_path / "x", "é" * 1000)
    assert sizes == [2000]
    assert (tmp_path / "x").read_bytes() == ("é" * 1000).encode()


def test_folders_that_cannot_be_written_to(tmp_path):
    (tmp_path / "file").write_text("")
    for path in (tmp_path / "none" / "r.json", tmp_path / "file" / "r.json", tmp_path):
        with pytest.raises(UnwritableTarget, match="cannot be written"):
            made().save(path)
    assert [one.name for one in tmp_path.iterdir()] == ["file"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_without_permission(tmp_path):
    tmp_path.chmod(0o500)
    with pytest.raises(UnwritableTarget, match="Permission denied"):
        made().save(tmp_path / "r.json")


def test_a_saved_release_has_the_permissions_of_any_new_file(tmp_path):
    made().save(tmp_path / "r.json")
    (tmp_path / "plain").write_text("")
    modes = {stat.S_IMODE((tmp_path / name).stat().st_mode) for name in ("r.json", "plain")}
    assert len(modes) == 1


@pytest.mark.skipif(not hasattr(os, "O_TMPFILE"), reason="needs files without a name")
def test_a_process_that_is_killed_while_it_writes_leaves_nothing(tmp_path):
    def parts():
        yield b"one"
        assert os.listdir(tmp_path) == []  # what is not there cannot be left
        yield b"two"

    write_whole(tmp_path / "new", parts())
    assert (tmp_path / "new").read_bytes() == b"onetwo"
    with pytest.raises(UnwritableTarget, match="exists, and nothing was written"):
        write_whole(tmp_path / "new", b"three")
    assert (tmp_path / "new").read_bytes() == b"onetwo"


@pytest.mark.parametrize("lacks", ["O_TMPFILE", "/proc", "support"])
def test_without_files_that_have_no_name_one_has_a_name_of_its_own(tmp_path, monkeypatch, lacks):
    real = os.open

    def opened(path, flags, *mode):
        unnamed = getattr(os, "O_TMPFILE", 0)
        if (lacks == "/proc" and str(path) == "/proc/self/fd") or (lacks == "support" and flags & unnamed == unnamed):
            raise OSError(errno.EOPNOTSUPP, "not here")
        return real(path, flags, *mode)

    if lacks == "O_TMPFILE":
        monkeypatch.delattr(os, "O_TMPFILE", raising=False)
    else:
        monkeypatch.setattr(os, "open", opened)

    def parts():
        yield b"one"
        [draft] = os.listdir(tmp_path)
        assert draft.startswith(".crowdgram-")

    write_whole(tmp_path / "new", parts())
    assert os.listdir(tmp_path) == ["new"]
    assert (tmp_path / "new").read_bytes() == b"one"


@pytest.mark.parametrize("private", [True, False])
def test_a_file_without_a_name_gets_the_permissions_of_any_new_file(tmp_path, private):
    write_whole(tmp_path / "new", b"one", private=private)
    (tmp_path / "other").touch()
    expected = 0o600 if private else (tmp_path / "other").stat().st_mode & 0o777
    assert (tmp_path / "new").stat().st_mode & 0o777 == expected
