"""The composition root: it connects what lower subjects ask of higher ones (core/ports.py). One function a higher subject.

Each process runs it once, when Django has loaded its models; the connections are in the process's container
(core/container.py). Only portal/apps.py connects ports, too: those that start tasks.
"""

from __future__ import annotations

import eventing.access.ports
import eventing.membership.ports
import eventing.operations.placement.ports
import eventing.outbox.ports
import eventing.peering.ports
import eventing.replication.ports
import eventing.rest.ports
import eventing.rps.ports
import eventing.subscriptions.ports
from eventing.access.verification import request_users
from eventing.intakes.services.intakes import intakes_rp_ends
from eventing.membership.selectors import directory as overlay_directory
from eventing.membership.wire import endpoint as overlay
from eventing.operations.placement.services import invitations
from eventing.operations.selectors import draining, lease_notices, own_load
from eventing.operations.services.alarms import alarms_rp_ends, homes_contradicted
from eventing.operations.services.losses import subscription_ended
from eventing.peering import peer_documents
from eventing.peering.selectors import domain_documents, token_issuers
from eventing.peering.wire import endpoints, hello
from eventing.replication.forwarding import inbound, wakeups
from eventing.replication.homes import handler as homes
from eventing.replication.homes import votes
from eventing.replication.joining import announcements, handler, presenters
from eventing.replication.loads import handler as loads
from eventing.replication.paths import handler as paths
from eventing.replication.regions import handler as regions
from eventing.replication.reliability import knowledge
from eventing.replication.selectors import replicas
from eventing.replication.services import conduct
from eventing.replication.services.replica_admissions import replicas_reconsider
from eventing.replication.services.replica_ends import participation_end
from eventing.replication.services.sealing import seals_next
from eventing.reports.selectors import placement_advice
from eventing.rps.selectors import quotas as rp_quotas
from eventing.store import peer_state
from eventing.subscriptions.push.selectors import endpoints_able
from eventing.subscriptions.push.services import endings, websub
from eventing.subscriptions.push.services import endpoints as push
from eventing.subscriptions.selectors import quotas as subscription_quotas
from eventing.subscriptions.sharing import shared_subscriptions


def connect() -> None:
    """Connect every port and hook of the domain. Idempotent."""
    _access()
    _intakes()
    _peering()
    _membership()
    _subscriptions()
    _operations()
    _replication()
    _rps()


def _access() -> None:
    eventing.rest.ports.principal_of.connect(request_users.principal_of)


def _intakes() -> None:
    eventing.rps.ports.rp_ending.connect(intakes_rp_ends)


def _peering() -> None:
    endpoints.handle("probe", endpoints.probe)
    endpoints.handle("hello", hello.hello)
    eventing.access.ports.token_issuers.connect(token_issuers.token_issuers)
    eventing.access.ports.domain_keys.connect(domain_documents.domain_keys)
    eventing.access.ports.document_refetch.connect(peer_documents.document_refetch)
    eventing.rps.ports.domain_fingerprint.connect(domain_documents.own_fingerprint)
    eventing.rps.ports.domain_document_serial.connect(domain_documents.own_serial)


def _membership() -> None:
    eventing.membership.ports.links_measured.connect(knowledge.links_measured)
    eventing.membership.ports.route_participants.connect(knowledge.route_participants)
    endpoints.handle("overlay", overlay.overlay)
    endpoints.handle("sponsor", overlay.sponsor)
    eventing.peering.ports.overlay_keys.connect(overlay.overlay_keys)
    eventing.peering.ports.overlay_introduction.connect(overlay.overlay_introduction)
    eventing.peering.ports.directory_record.connect(overlay_directory.record_of)


def _subscriptions() -> None:
    endpoints.handle("subscriptions", shared_subscriptions.subscriptions)
    eventing.subscriptions.ports.endpoint_checked.connect(push.options_checked)
    eventing.subscriptions.ports.endpoint_set.connect(push.endpoint_set)
    eventing.subscriptions.ports.endpoints_able.connect(endpoints_able)
    eventing.subscriptions.ports.subscription_ending.connect(push.subscription_ended)
    eventing.rps.ports.discovery_field.connect(websub.discovery_field)
    eventing.rps.ports.rp_ending.connect(endings.rp_ended)
    eventing.outbox.ports.subscriptions_in_domain.connect(subscription_quotas.subscriptions_in_domain)
    eventing.rps.ports.subscriptions_ending_with.connect(subscription_quotas.subscriptions_ending_with)


def _operations() -> None:
    eventing.rps.ports.rp_ending.connect(alarms_rp_ends)
    eventing.replication.ports.homes_contradicted.connect(homes_contradicted)
    eventing.subscriptions.ports.subscription_ending.connect(subscription_ended)
    eventing.rps.ports.lease_notice.connect(lease_notices.rp_notice)
    eventing.subscriptions.ports.lease_notice.connect(lease_notices.subscription_notice)
    eventing.membership.ports.own_load.connect(own_load.own_load)
    eventing.replication.ports.draining.connect(draining.draining)
    eventing.subscriptions.ports.draining.connect(draining.draining)
    eventing.replication.ports.invitation_decide.connect(invitations.invitation_decide)
    eventing.operations.placement.ports.placement_advice.connect(placement_advice.placement_advice)


def _replication() -> None:
    eventing.outbox.ports.rp_changed.connect(announcements.spread)
    eventing.rps.ports.links_of_rps.connect(replicas.links_of_rps)
    eventing.rps.ports.seal_next.connect(_seal_next)
    eventing.rps.ports.policy_changed.connect(replicas_reconsider)
    eventing.rps.ports.rp_ending.connect(participation_end)
    eventing.peering.ports.domains_admitted.connect(replicas.domains_admitted)
    eventing.peering.ports.ever_admitted.connect(replicas.ever_admitted)
    eventing.peering.ports.peer_removed.connect(peer_state.forget)
    eventing.peering.ports.misbehaviour_noted.connect(conduct.misbehaviour_conduct)
    eventing.membership.ports.process_stopping.connect(wakeups.stopping)
    eventing.subscriptions.ports.takes_part.connect(replicas.origin_admitted)
    eventing.subscriptions.ports.admitted_url.connect(replicas.admitted_url)
    endpoints.handle("exchange", inbound.exchange)
    endpoints.handle("join", handler.join)
    endpoints.handle("leave", handler.leave)
    endpoints.handle("invite", handler.invite)
    endpoints.handle("home", homes.home)
    endpoints.handle("release", handler.release)
    endpoints.handle("elect", votes.elect)
    endpoints.handle("region", regions.region)
    endpoints.handle("path", paths.path)
    endpoints.handle("load", loads.load)
    eventing.rps.ports.replicas_shown.connect(presenters.replicas_shown)


def _seal_next(rp: str) -> bool:
    return bool(seals_next([rp]).more)


def _rps() -> None:
    eventing.outbox.ports.log_bounds.connect(rp_quotas.log_bounds)
    eventing.outbox.ports.rps_in_domain.connect(rp_quotas.rps_in_domain)
