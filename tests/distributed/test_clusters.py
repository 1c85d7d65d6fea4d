"""The place of a process in its job, from the variables of each launcher: a table of environments."""

import socket
import sys
import types

import pytest

from hlotrace.distributed.clusters import Place, detect, first_host, host_of

SLURM = {
    "SLURM_JOB_ID": "77",
    "SLURM_STEP_NODELIST": "gpu[03-05,9]",
    "SLURM_NTASKS": "8",
    "SLURM_PROCID": "5",
    "SLURM_LOCALID": "1",
}
OMPI = {
    "OMPI_COMM_WORLD_SIZE": "4",
    "OMPI_COMM_WORLD_RANK": "2",
    "OMPI_COMM_WORLD_LOCAL_RANK": "0",
    "OMPI_COMM_WORLD_LOCAL_SIZE": "2",
    "OMPI_MCA_orte_hnp_uri": "1531576320.0;tcp://10.96.0.1,10.148.0.1:34911",
}
K8S = {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "JOB_COMPLETION_INDEX": "2", "HOSTNAME": "train-run-2"}
AICHOR = {"JAXOPERATOR_COORDINATOR_ADDRESS": "co:1234", "JAXOPERATOR_NUM_PROCESSES": "4",
          "JAXOPERATOR_PROCESS_ID": "3"}
TPU = {"TPU_WORKER_HOSTNAMES": "t0,t1", "TPU_WORKER_ID": "1"}
SLICES = {"MEGASCALE_COORDINATOR_ADDRESS": "c:81", "MEGASCALE_NUM_SLICES": "3", "MEGASCALE_SLICE_ID": "2"}


@pytest.mark.quick
@pytest.mark.parametrize(
    ("env", "host", "rest"),
    [
        ({}, None, (None, None, None)),
        (SLURM, "gpu03", (8, 5, (1,))),
        (SLURM | {"CUDA_VISIBLE_DEVICES": "3"}, "gpu03", (8, 5, None)),
        (SLURM | {"SLURM_STEP_NUM_TASKS": "2"}, "gpu03", (2, 5, (1,))),
        # sbatch, no step
        ({k: v for k, v in SLURM.items() if k != "SLURM_PROCID"}, None, (None, None, None)),
        (OMPI, "10.96.0.1", (4, 2, (0,))),
        (OMPI | {"OMPI_COMM_WORLD_LOCAL_SIZE": "4"}, "127.0.0.1", (4, 2, (0,))),
        ({k: v for k, v in OMPI.items() if "MCA" not in k}, None, (4, 2, (0,))),
        (TPU, "t0", (2, 1, None)),
        (TPU | SLICES, "c", (6, 5, None)),
        (
            {"HLOTRACE_COORDINATOR_ADDRESS": "a:1", "JAX_NUM_PROCESSES": "2", "JAX_PROCESS_ID": "0"},
            "a",
            (2, 0, None),
        ),
        ({"JAX_COORDINATOR_ADDRESS": "j:1", "HLOTRACE_COORDINATOR_ADDRESS": "h:1"}, "h", (None, None, None)),
        (SLURM | {"JAX_COORDINATOR_ADDRESS": "a:1", "JAX_LOCAL_DEVICE_IDS": "0,1"}, "a", (8, 5, (0, 1))),
        (OMPI | SLURM, "gpu03", (8, 5, (1,))),
        (SLURM | {"SLURM_STEP_NODELIST": "r[1-2]n[03-04],x"}, "r1n03", (8, 5, (1,))),
        (OMPI | {"OMPI_MCA_orte_hnp_uri": "7.0;tcp6://[fd00::5]:34911"}, "[fd00::5]", (4, 2, (0,))),
        (
            OMPI | {"OMPI_MCA_orte_hnp_uri": "7.0;tcp6://[fe80::b9b:ac5d,fd00::5]:34911"},
            "[fe80::b9b:ac5d]",
            (4, 2, (0,)),
        ),
        (OMPI | {"OMPI_MCA_orte_hnp_uri": "7.0;tcp://10.0.0.7:34911"}, "10.0.0.7", (4, 2, (0,))),
        (TPU | {"TPU_WORKER_HOSTNAMES": "fd00::1,fd00::2"}, "[fd00::1]", (2, 1, None)),
        (TPU | {"TPU_WORKER_HOSTNAMES": "[fd00::1]:7,[fd00::2]:7"}, "[fd00::1]", (2, 1, None)),
        (TPU | SLICES | {"MEGASCALE_COORDINATOR_ADDRESS": "[fd00::1]:81"}, "[fd00::1]", (6, 5, None)),
        (TPU | SLICES | {"MEGASCALE_COORDINATOR_ADDRESS": "10.0.0.1"}, "10.0.0.1", (6, 5, None)),
        (AICHOR, "co", (4, 3, None)),
        (
            {k: v for k, v in AICHOR.items() if k != "JAXOPERATOR_PROCESS_ID"} | {"JAX_PROCESS_ID": "1"},
            "co",
            (4, 1, None),
        ),
        (AICHOR | {"JAX_COORDINATOR_ADDRESS": "mine:5"}, "mine", (4, 3, None)),
        (K8S, "train-run-0.net.ns.svc.cluster.local", (None, 2, None)),
        (K8S | {"JAX_NUM_PROCESSES": "3"}, "train-run-0.net.ns.svc.cluster.local", (3, 2, None)),
        (K8S | {"HOSTNAME": "own-name"}, None, (None, 2, None)),
        (K8S | {"HOSTNAME": "alone-2"}, None, (None, 2, None)),  # no headless service
        ({k: v for k, v in K8S.items() if k != "JOB_COMPLETION_INDEX"}, None, (None, None, None)),
        (K8S | TPU, "t0", (2, 1, None)),
    ],
)
def test_a_place_is_read_from_the_environment(env, host, rest, monkeypatch):
    monkeypatch.setattr("socket.getfqdn",
                        lambda name: name + ".net.ns.svc.cluster.local" * name.startswith("train"))
    address, *found = detect(env)
    assert (address and address.rpartition(":")[0], tuple(found)) == (host, rest)
    assert address is None or 0 < int(address.rpartition(":")[2]) < 65536


@pytest.mark.quick
def test_the_method_of_detection_is_chosen():
    assert detect(OMPI | SLURM, "ompi").num_processes == 4
    assert detect(SLURM, "deactivate") == Place()
    with pytest.raises(ValueError,
                       match="want slurm, ompi, cloud_tpu, jaxoperator, k8s, mpi4py or deactivate"):
        detect(SLURM, "k9s")


@pytest.mark.quick
def test_processes_of_a_job_agree_on_a_port_and_jobs_differ():
    assert detect(SLURM)[0] == detect(SLURM | {"SLURM_PROCID": "0"})[0]
    assert detect(SLURM)[0] != detect(SLURM | {"SLURM_JOB_ID": "78"})[0]


@pytest.mark.quick
@pytest.mark.parametrize(("nodes", "host"),
                         [("n1", "n1"),
                          ("n1,n2", "n1"),
                          ("n[07-9]", "n07"),
                          ("n[3,5],m1", "n3"),
                          ("a-b[01-02]-x,c", "a-b01-x"),
                          ("a[1-2]b[3-4]", "a1b3"),
                          ("rack[009-011,20]-n[0,4-7]x,m[1-2]", "rack009-n0x"),
                          ("[5-6],n1", "5"),
                          ("a[1]b[2][3-4].net,x", "a1b23.net")])
def test_the_first_host_of_a_slurm_list(nodes, host):
    assert first_host(nodes) == host


@pytest.mark.quick
@pytest.mark.parametrize("nodes", ["", ",a", "a[1-2", "a]b", "a[]"])
def test_what_is_no_slurm_list_is_refused(nodes):
    with pytest.raises(ValueError, match="names no host"):
        first_host(nodes)


@pytest.mark.quick
@pytest.mark.parametrize(
    ("address", "host"),
    [("h", "h"), ("h:81", "h"), ("10.0.0.1:81", "10.0.0.1"), ("[fd00::1]:81", "[fd00::1]"),
     ("[fd00::1]", "[fd00::1]"),
     ("fd00::1", "[fd00::1]")],
)
def test_the_host_of_an_address(address, host):
    assert host_of(address) == host


class Ranks:
    """mpi4py's communicator, of one rank of `size`; those of a host hear each other in `shared`."""

    def __init__(self, rank, size, shared=None, said=None):
        self.rank, self.size, self.shared, self.said = rank, size, shared, said

    def Get_rank(self):
        return self.rank

    def Get_size(self):
        return self.size

    def Split_type(self, kind):
        assert kind == "a host"
        return self.shared

    def bcast(self, value, root):
        assert root == 0 and (value is None) == (self.rank != 0)
        return value or self.said


@pytest.mark.quick
@pytest.mark.parametrize(("world", "env", "host", "rest"),
                         [(Ranks(0, 4, Ranks(0, 2)), {}, socket.gethostname(), (4, 0, (0,))),
                          (Ranks(3, 4, Ranks(1, 2), "h:9"), {}, "h", (4, 3, (1,))),
                          (Ranks(3, 4, Ranks(1, 2), "h:9"), {"CUDA_VISIBLE_DEVICES": "1"}, "h", (4, 3, None)),
                          (Ranks(0, 2, Ranks(0, 2)), {}, "127.0.0.1", (2, 0, (0,))),
                          (Ranks(1, 4, Ranks(0, 1), "h:9"), {}, "h", (4, 1, None))])
def test_mpi4py_says_a_place_where_it_is_chosen(world, env, host, rest, monkeypatch):
    package = types.SimpleNamespace(MPI=types.SimpleNamespace(COMM_WORLD=world, COMM_TYPE_SHARED="a host"))
    monkeypatch.setitem(sys.modules, "mpi4py", package)
    assert detect(env) == Place()
    address, *found = detect(env, "mpi4py")
    assert (address.rpartition(":")[0], tuple(found)) == (host, rest) and int(address.rpartition(":")[2])
    assert detect({"JAX_PROCESS_ID": "7"}, "mpi4py").process_id == 7


@pytest.mark.quick
def test_mpi4py_is_missed_by_name(monkeypatch):
    monkeypatch.setitem(sys.modules, "mpi4py", None)
    with pytest.raises(ImportError, match="mpi4py"):
        detect({}, "mpi4py")
