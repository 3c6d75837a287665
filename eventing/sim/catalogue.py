"""All kinds of faults, measurements and roles that scenario files name."""

from __future__ import annotations

from typing import Final

from eventing.sim.clocks import ClockSet
from eventing.sim.disturbing import Disturb
from eventing.sim.faults import Crash, CutOff, Fault, Heal, JoinFault, Loss, OneWay, Partition, Pause, Restart, Throttle
from eventing.sim.liars.accusers import AccuserRole, HalfDetachedRole
from eventing.sim.liars.askers import AskerRole
from eventing.sim.liars.babblers import BabblerRole
from eventing.sim.liars.colluders import ColluderRole
from eventing.sim.liars.droppers import DataDropperRole
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
from eventing.sim.liars.volunteers import (
    CirclingVolunteerRole,
    ContradictoryPolicyRole,
    DesertingVolunteerRole,
    DroppingVolunteerRole,
    EndlessVolunteerRole,
    IdleVolunteerRole,
    RefusingVolunteerRole,
    StaleVolunteerRole,
    StormingHomeRole,
)
from eventing.sim.measurements.balancing import BalancingMeasured
from eventing.sim.measurements.base import Measurement
from eventing.sim.measurements.broadcasts import Broadcasts
from eventing.sim.measurements.checks import LivenessChecked, SafetyChecked
from eventing.sim.measurements.directories import Directories
from eventing.sim.measurements.failures import LinkFailures
from eventing.sim.measurements.homes import HomesMeasured
from eventing.sim.measurements.invitations import InvitationsMeasured
from eventing.sim.measurements.liars import Caught, Liars
from eventing.sim.measurements.placements import PlacementMeasured
from eventing.sim.measurements.routes import RoutesMeasured
from eventing.sim.measurements.scored import Scored
from eventing.sim.measurements.speed import Speed
from eventing.sim.measurements.suspicions import Suspicions
from eventing.sim.measurements.topology import Components, Degree
from eventing.sim.measurements.traffic import TrafficMeasured
from eventing.sim.placement.killing import KillPlanner
from eventing.sim.registry import Registry
from eventing.sim.roles import Role

FAULTS: Final[Registry[Fault]] = Registry(
    "fault",
    ClockSet,
    Crash,
    CutOff,
    Disturb,
    Heal,
    JoinFault,
    KillPlanner,
    Loss,
    OneWay,
    Partition,
    Pause,
    Restart,
    Throttle,
)
MEASUREMENTS: Final[Registry[Measurement]] = Registry(
    "measurement",
    BalancingMeasured,
    Broadcasts,
    Caught,
    Components,
    Degree,
    Directories,
    HomesMeasured,
    InvitationsMeasured,
    Liars,
    LinkFailures,
    LivenessChecked,
    PlacementMeasured,
    RoutesMeasured,
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
    CirclingVolunteerRole,
    ColluderRole,
    ContradictoryPolicyRole,
    DataDropperRole,
    DesertingVolunteerRole,
    DroppingVolunteerRole,
    EndlessVolunteerRole,
    EquivocatorRole,
    FlapperRole,
    FlooderRole,
    FutureVersionsRole,
    GraftFlapperRole,
    HalfDetachedRole,
    IdleVolunteerRole,
    MuteRole,
    PathInventorRole,
    RefusingVolunteerRole,
    ReplayerRole,
    ShufflePoisonerRole,
    SilentReplicaRole,
    SlowReaderRole,
    SlowReplicaRole,
    StaleVolunteerRole,
    StormingHomeRole,
    SybilSponsorRole,
)
