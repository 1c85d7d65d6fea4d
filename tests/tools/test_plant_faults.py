"""The table of faults still applies to the library: each row is found once, and its nearest tests are there."""
from collections import Counter

import pytest
from places import ROOT
from remembered import found

from tools import plant_faults

pytestmark = pytest.mark.quick


def compiled(path, fault):
    """The name of the code of a file with a fault in it."""
    return [compile(fault.planted(path.read_text("utf-8")), fault.path, "exec").co_filename]


@pytest.mark.parametrize("fault", plant_faults.FAULTS, ids=lambda fault: fault.name)
def test_a_fault_can_be_planted(fault):
    assert found(compiled, ROOT / fault.path, fault) == [fault.path]
    assert [path for path in fault.nearest() if not (ROOT / path).is_file()] == []
    assert fault.breaks and not fault.breaks.endswith(".")


def test_there_are_ten_in_each_large_folder():
    assert max(Counter(fault.name for fault in plant_faults.FAULTS).values()) == 1
    folders = Counter(fault.folder for fault in plant_faults.FAULTS)
    assert min(folders[folder] for folder in ("core", "runtime", "lowering", "numpy")) >= 10


def test_a_row_that_does_not_apply_is_an_error():
    row = plant_faults.Fault("row", "core/jaxpr.py", "no such text", "", "nothing")
    with pytest.raises(ValueError, match="row: hlotrace/core/jaxpr.py has 'no such text' 0 times"):
        row.planted("x = 1\n")
    with pytest.raises(ValueError, match="the same program"):
        plant_faults.Fault("row", "core/jaxpr.py", "x = 1", "x  = 1", "nothing").planted("x = 1\n")


def test_faults_are_chosen_by_folder_file_or_name():
    assert {fault.folder for fault in plant_faults.chosen(["core"])} == {"core"}
    assert [fault.name for fault in plant_faults.chosen(["argmax-tie"])] == ["argmax-tie"]
    assert len(plant_faults.chosen([])) == len(plant_faults.FAULTS)
    with pytest.raises(ValueError, match="no fault is called 'nowhere'"):
        plant_faults.chosen(["nowhere"])
