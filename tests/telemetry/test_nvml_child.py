"""What the prober makes of what a driver says: the real pynvml over a fake library, in this process."""

from __future__ import annotations

from collections.abc import Iterator

import pynvml
import pytest
from telemetry.fake_nvml import ALL_ONES, MIB, FakeCard, FakeLibrary, install

from hubgov.core.devices import Health
from hubgov.telemetry.nvml_child import DriverTroubleError, Reader
from hubgov.telemetry.probe import DeviceProcess, DeviceReading

UTILISATION = "nvmlDeviceGetUtilizationRates"
MEMORY_2 = "nvmlDeviceGetMemoryInfo_v2"
POWER = "nvmlDeviceGetPowerUsage"
COMPUTE_3 = "nvmlDeviceGetComputeRunningProcesses_v3"


@pytest.fixture(autouse=True)
def _uninstall() -> Iterator[None]:
    yield
    install(None)


def a_library(*cards: FakeCard) -> FakeLibrary:
    library = FakeLibrary(list(cards) or [FakeCard("GPU-a")])
    install(library)
    return library


def the_only(reader: Reader) -> DeviceReading:
    (device,) = reader.read()
    return device


def test_a_healthy_card_tells_everything() -> None:
    a_library(FakeCard("GPU-a", minor=3, compute=[(42, 512 * MIB)], graphics=[(7, 16 * MIB)]))
    assert the_only(Reader()) == DeviceReading(
        index=0,
        uuid="GPU-a",
        model="NVIDIA A100-SXM4-80GB",
        memory_mib=81920,
        minor=3,
        used_mib=1024,
        utilisation_percent=37,
        power_mw=71_000,
        health=Health.OK,
        unknown_because=None,
        processes=(DeviceProcess(7, 16), DeviceProcess(42, 512)),
        simulated=False,
    )


def test_several_cards_are_told_apart() -> None:
    a_library(FakeCard("GPU-a", utilisation=1), FakeCard("GPU-b", utilisation=2), FakeCard("GPU-c", utilisation=3))
    read = Reader().read()
    assert [(d.index, d.uuid, d.utilisation_percent) for d in read] == [
        (0, "GPU-a", 1),
        (1, "GPU-b", 2),
        (2, "GPU-c", 3),
    ]


def test_an_old_driver_gives_memory_and_processes_by_its_older_calls() -> None:
    library = a_library(FakeCard("GPU-a", compute=[(42, 512 * MIB)]))
    library.without(MEMORY_2, COMPUTE_3, "nvmlDeviceGetGraphicsRunningProcesses_v3")
    device = the_only(Reader())
    assert device.used_mib == 1024 + 600
    assert device.processes == (DeviceProcess(42, 512),)
    assert device.unknown_because is None


def test_what_a_driver_does_not_know_is_unknown_and_not_asked_again() -> None:
    library = a_library()
    library.without(POWER)
    library.errors[UTILISATION] = pynvml.NVML_ERROR_NOT_SUPPORTED
    reader = Reader()
    first, second = the_only(reader), the_only(reader)
    assert first == second
    assert (first.utilisation_percent, first.power_mw, first.used_mib) == (None, None, 1024)
    assert first.unknown_because == ("utilisation: not supported by this card; power: not supported by this driver")
    assert first.health is Health.OK
    assert library.asked.count(UTILISATION) == 1


def test_a_call_that_fails_now_is_asked_again() -> None:
    library = a_library()
    library.errors[UTILISATION] = pynvml.NVML_ERROR_TIMEOUT
    reader = Reader()
    assert the_only(reader).unknown_because == "utilisation: Timeout"
    library.errors.clear()
    assert the_only(reader).utilisation_percent == 37


@pytest.mark.parametrize(
    ("code", "why"),
    [
        (pynvml.NVML_ERROR_GPU_IS_LOST, "GPU is lost"),
        (pynvml.NVML_ERROR_RESET_REQUIRED, "GPU requires restart"),
    ],
)
def test_a_lost_card_is_sick_and_blinds_no_other(code: int, why: str) -> None:
    library = a_library(FakeCard("GPU-a"), FakeCard("GPU-b"))
    reader = Reader()
    reader.read()
    library.errors[MEMORY_2, 1] = code
    good, lost = reader.read()
    assert (good.health, good.utilisation_percent) == (Health.OK, 37)
    assert (lost.uuid, lost.health, lost.unknown_because) == ("GPU-b", Health.SICK, why)
    assert (lost.used_mib, lost.utilisation_percent, lost.power_mw, lost.processes) == (None,) * 4
    library.errors.clear()
    assert [device.health for device in reader.read()] == [Health.OK, Health.OK]


def test_a_card_lost_before_it_was_ever_read_has_no_name() -> None:
    library = a_library(FakeCard("GPU-a"), FakeCard("GPU-b"))
    library.errors["nvmlDeviceGetHandleByIndex_v2", 1] = pynvml.NVML_ERROR_GPU_IS_LOST
    _, lost = Reader().read()
    assert (lost.index, lost.uuid, lost.health, lost.memory_mib) == (1, "", Health.SICK, 0)


def test_garbage_in_the_process_list_is_dropped_or_unknown() -> None:
    a_library(
        FakeCard(
            "GPU-a",
            compute=[(0, MIB), (42, 10 * MIB), (2**32 - 1, MIB), (43, 2**60), (44, ALL_ONES)],
            graphics=[(42, 30 * MIB), (44, 5 * MIB)],
        )
    )
    assert the_only(Reader()).processes == (
        DeviceProcess(42, 30),
        DeviceProcess(43, None),
        DeviceProcess(44, 5),
    )


@pytest.mark.parametrize("symbol", [COMPUTE_3, "nvmlDeviceGetGraphicsRunningProcesses_v3"])
def test_not_found_means_no_process(symbol: str) -> None:
    a_library().errors[symbol] = pynvml.NVML_ERROR_NOT_FOUND
    device = the_only(Reader())
    assert (device.processes, device.unknown_because) == ((), None)


def test_half_a_process_list_is_not_one() -> None:
    library = a_library(FakeCard("GPU-a", compute=[(42, MIB)]))
    library.errors["nvmlDeviceGetGraphicsRunningProcesses_v3"] = pynvml.NVML_ERROR_NO_PERMISSION
    device = the_only(Reader())
    assert device.processes is None
    assert device.unknown_because == "graphics processes: Insufficient Permissions"


def test_a_card_without_a_graphics_list_has_the_processes_that_compute() -> None:
    library = a_library(FakeCard("GPU-a", compute=[(42, MIB)]))
    for version in (2, 3):
        library.errors[f"nvmlDeviceGetGraphicsRunningProcesses_v{version}"] = pynvml.NVML_ERROR_NOT_SUPPORTED
    device = the_only(Reader())
    assert (device.processes, device.unknown_because) == ((DeviceProcess(42, 1),), None)


def test_memory_of_all_ones_is_unknown_and_never_zero() -> None:
    a_library(FakeCard("GPU-a", used=ALL_ONES))
    device = the_only(Reader())
    assert (device.memory_mib, device.used_mib) == (81920, None)
    assert device.unknown_because == "memory in use: the driver gives no value"


def test_a_card_that_hides_its_memory_says_so() -> None:
    library = a_library()
    for symbol in (MEMORY_2, "nvmlDeviceGetMemoryInfo"):
        library.errors[symbol] = pynvml.NVML_ERROR_NOT_SUPPORTED
    device = the_only(Reader())
    assert (device.memory_mib, device.used_mib) == (0, None)
    assert device.unknown_because == "memory: not supported by this card"


@pytest.mark.parametrize(
    ("told", "taken", "why"),
    [
        (0, 0, None),
        (100, 100, None),
        (250, 100, None),
        (2**32 - 1, None, "utilisation: the driver gives no value"),
    ],
)
def test_utilisation_is_a_percentage_or_unknown(told: int, taken: int | None, why: str | None) -> None:
    a_library(FakeCard("GPU-a", utilisation=told))
    device = the_only(Reader())
    assert (device.utilisation_percent, device.unknown_because) == (taken, why)


def test_utilisation_is_not_measurable_on_mig() -> None:
    library = a_library(FakeCard("GPU-a", mig=1), FakeCard("GPU-b", mig=0))
    cut, whole = Reader().read()
    assert (cut.utilisation_percent, cut.used_mib) == (None, 1024)
    assert cut.unknown_because == "utilisation: not measurable on MIG"
    assert whole.utilisation_percent == 37
    assert library.asked.count(UTILISATION) == 1


@pytest.mark.parametrize(
    "code",
    [
        pynvml.NVML_ERROR_DRIVER_NOT_LOADED,
        pynvml.NVML_ERROR_UNINITIALIZED,
        pynvml.NVML_ERROR_LIB_RM_VERSION_MISMATCH,
        pynvml.NVML_ERROR_UNKNOWN,
    ],
)
@pytest.mark.parametrize("symbol", ["nvmlDeviceGetCount_v2", "nvmlDeviceGetUUID", MEMORY_2])
def test_a_driver_that_answers_for_no_card_ends_the_prober(symbol: str, code: int) -> None:
    a_library(FakeCard("GPU-a"), FakeCard("GPU-b")).errors[symbol] = code
    with pytest.raises(DriverTroubleError):
        Reader().read()


def test_one_card_that_gives_an_unknown_error_is_unknown_alone() -> None:
    library = a_library(FakeCard("GPU-a"), FakeCard("GPU-b"))
    library.errors[MEMORY_2, 0] = pynvml.NVML_ERROR_UNKNOWN
    failed, good = Reader().read()
    assert (failed.health, good.health) == (Health.UNKNOWN, Health.OK)


def test_one_question_that_gives_an_unknown_error_costs_that_number_only() -> None:
    a_library().errors[POWER] = pynvml.NVML_ERROR_UNKNOWN
    device = the_only(Reader())
    assert (device.health, device.power_mw, device.used_mib) == (Health.OK, None, 1024)
    assert device.unknown_because == "power: Unknown Error"


def test_no_card_is_a_reading_too() -> None:
    install(FakeLibrary([]))
    assert Reader().read() == ()
