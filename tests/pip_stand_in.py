"""A stand-in of pip: it refuses what is not `install`, a folder without a project, or an extra that this one
lacks."""
import re
import sys
import tomllib
from pathlib import Path

PROJECT = tomllib.loads((Path(__file__).resolve().parent.parent / "pyproject.toml").read_text("utf-8"))[
    "project"]


def main(arguments):
    command, *wanted = [argument for argument in arguments if argument != "-e"]
    assert command == "install" and wanted
    for requirement in wanted:
        name, extras, version = re.fullmatch(r"([\w.-]+)(?:\[(.*)\])?(?:==([\w.*]+))?", requirement).groups()
        if name == ".":
            assert set(filter(None, (extras or "").split(","))) <= PROJECT["optional-dependencies"].keys()
        else:
            assert version, f"{name}: which version?"


if __name__ == "__main__":
    main(sys.argv[1:])
