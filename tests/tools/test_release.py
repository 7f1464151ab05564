"""The release checklist notices what must not be published."""

import zipfile
from pathlib import Path

import pytest

from tools import release


def write_versions(root: Path, changelog: str, citation: str = "1.2.3") -> None:
    (root / "src" / "leader").mkdir(parents=True, exist_ok=True)
    (root / "pyproject.toml").write_text('[project]\nname = "x"\nversion = "1.2.3"\n')
    (root / "src" / "leader" / "__init__.py").write_text('__version__ = "1.2.3"\n')
    (root / "CITATION.cff").write_text(f"cff-version: 1.2.0\nversion: {citation}\n")
    (root / "CHANGELOG.md").write_text(f"# Changelog\n\n{changelog}\n\n## 1.2.2 (2026-01-01)\n")


def test_versions_must_agree_and_have_a_date(tmp_path: Path) -> None:
    write_versions(tmp_path, "## 1.2.3 (2026-11-18)")
    assert release.check_version(tmp_path) == "1.2.3"
    write_versions(tmp_path, "## 1.2.3 (unreleased)")
    assert release.check_version(tmp_path, draft=True) == "1.2.3"
    with pytest.raises(release.ReleaseError, match="no date"):
        release.check_version(tmp_path)
    write_versions(tmp_path, "## 1.2.3 (2026-11-18)", citation="1.2.2")
    with pytest.raises(release.ReleaseError, match=r"CITATION.cff: 1.2.2"):
        release.check_version(tmp_path)
    write_versions(tmp_path, "## 1.3.0 (2026-11-18)")
    with pytest.raises(release.ReleaseError, match=r"CHANGELOG.md: 1.3.0"):
        release.check_version(tmp_path)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ("", None),
        ("leader/py.typed", "lacks"),
        ("LICENSE", "lacks LICENSE"),
        ("+tests/test_x.py", "does not belong"),
        ("big", "MB"),
    ],
)
def test_a_wheel_that_lacks_something_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: str, told: str | None
) -> None:
    wheel = tmp_path / "x.whl"
    names = [*release.NEEDED, *(f"leader_ir-1.dist-info/licenses/{name}" for name in release.NOTICES)]
    names = [name for name in names if not change or not name.endswith(change)]
    with zipfile.ZipFile(wheel, "w") as content:
        for name in (*names, *([change[1:]] if change.startswith("+") else [])):
            content.writestr(name, "x")
    if change == "big":
        monkeypatch.setattr(release, "MOST_BYTES", 100)
    if told is None:
        release.check_wheel(wheel)
        return
    with pytest.raises(release.ReleaseError, match=told):
        release.check_wheel(wheel)
