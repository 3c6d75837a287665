"""All kinds of faults, measurements and roles that scenario files name."""

from __future__ import annotations

from typing import Final

from eventing.sim.faults import Crash, Fault, Heal, JoinFault, Loss, OneWay, Partition, Pause, Restart, Throttle
from eventing.sim.liars.accusers import AccuserRole, HalfDetachedRole
from eventing.sim.liars.askers import AskerRole
from eventing.sim.liars.babblers import BabblerRole
from eventing.sim.liars.colluders import ColluderRole
from eventing.sim.liars.equivocators import EquivocatorRole
from eventing.sim.liars.flappers import FlapperRole
from eventing.sim.liars.flooders import FlooderRole
from eventing.sim.liars.mutes import MuteRole, SlowReaderRole
from eventing.sim.liars.poisoners import ShufflePoisonerRole
from eventing.sim.liars.replayers import FutureVersionsRole, ReplayerRole
from eventing.sim.liars.replicas import (
    BoasterRole,
    GraftFlapperRole,
    PathInventorRole,
    SilentReplicaRole,
    SlowReplicaRole,
)
from eventing.sim.liars.sybils import SybilSponsorRole
from eventing.sim.measurements.base import Measurement
from eventing.sim.measurements.broadcasts import Broadcasts
from eventing.sim.measurements.checks import LivenessChecked, SafetyChecked
from eventing.sim.measurements.directories import Directories
from eventing.sim.measurements.failures import LinkFailures
from eventing.sim.measurements.liars import Caught, Liars
from eventing.sim.measurements.scored import Scored
from eventing.sim.measurements.speed import Speed
from eventing.sim.measurements.suspicions import Suspicions
from eventing.sim.measurements.topology import Components, Degree
from eventing.sim.measurements.traffic import TrafficMeasured
from eventing.sim.registry import Registry
from eventing.sim.roles import Role

FAULTS: Final[Registry[Fault]] = Registry(
    "fault",
    Crash,
    Heal,
    JoinFault,
    Loss,
    OneWay,
    Partition,
    Pause,
    Restart,
    Throttle,
)
MEASUREMENTS: Final[Registry[Measurement]] = Registry(
    "measurement",
    Broadcasts,
    Caught,
    Components,
    Degree,
    Directories,
    Liars,
    LinkFailures,
    LivenessChecked,
    SafetyChecked,
    Scored,
    Speed,
    Suspicions,
    TrafficMeasured,
)
ROLES: Final[Registry[Role]] = Registry(
    "role",
    AccuserRole,
    AskerRole,
    BabblerRole,
    BoasterRole,
    ColluderRole,
    EquivocatorRole,
    FlapperRole,
    FlooderRole,
    FutureVersionsRole,
    GraftFlapperRole,
    HalfDetachedRole,
    MuteRole,
    PathInventorRole,
    ReplayerRole,
    ShufflePoisonerRole,
    SilentReplicaRole,
    SlowReaderRole,
    SlowReplicaRole,
    SybilSponsorRole,
)
