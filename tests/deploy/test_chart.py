"""The Helm chart: rendered by Helm, strictly valid for the supported releases of Kubernetes, and it says what the image says."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from demo.harness.servers import ROOT
from deploy.image import DATA, USER
from deploy.wheels import version

pytestmark = pytest.mark.long

needs = "is not installed (make .venv/.release-installed)"
helm = pytest.importorskip("helm_python", reason=f"helm-python-sdk {needs}")
kubernetes_validate = pytest.importorskip("kubernetes_validate", reason=f"kubernetes-validate {needs}")

CHART = ROOT / "deploy" / "helm" / "herald"
RELEASES = ("1.30", "1.31", "1.32", "1.33", "1.34", "1.35", "1.36", "1.37")
VALUES: dict[str, dict[str, Any]] = {
    "defaults": {},
    "everything": {
        "domain": "example.org",
        "publicUrl": "https://herald.example.org",
        "settings": {"sessions_max": 1000000, "log_level": "debug", "records": False},
        "existingSecret": "herald-secrets",
        "imagePullSecrets": [{"name": "registry"}],
        "persistence": {"enabled": True, "size": "20Gi", "storageClass": "fast"},
        "ingress": {
            "enabled": True,
            "className": "nginx",
            "annotations": {"a": "b"},
            "host": "herald.example.org",
            "tlsSecret": "tls",
        },
        "networkPolicy": {"enabled": True, "from": [{"namespaceSelector": {"matchLabels": {"name": "ingress"}}}]},
        "nodeSelector": {"disk": "fast"},
        "tolerations": [{"key": "a", "operator": "Exists"}],
        "affinity": {"nodeAffinity": {}},
        "podAnnotations": {"a": "b"},
    },
    "a trial": {"persistence": {"enabled": False}, "service": {"type": "NodePort", "port": 8080}},
}


def rendered(values: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the manifests by kind."""
    texts = helm.Chart.load(str(CHART)).render(values, name="one", namespace="events")
    documents = [
        found for name, text in texts.items() if name.endswith(".yaml") for found in yaml.safe_load_all(text) if found
    ]
    return {document["kind"]: document for document in documents}


def pod(values: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = rendered(values)["StatefulSet"]["spec"]["template"]["spec"]
    return found


def test_helm_finds_nothing_wrong() -> None:
    report = helm.lint(str(CHART), VALUES["everything"], strict=True)
    assert report["errors"] == []
    assert [message for message in report["messages"] if message["severity"] > 1] == []


@pytest.mark.parametrize("values", VALUES.values(), ids=VALUES)
def test_the_manifests_are_strictly_valid_for_every_supported_release(values: dict[str, Any]) -> None:
    manifests = rendered(values)
    assert {"StatefulSet", "Service", "ConfigMap"} <= set(manifests)
    for release in RELEASES:
        for manifest in manifests.values():
            assert kubernetes_validate.validate(manifest, release, strict=True) == release


def test_a_field_that_kubernetes_does_not_know_is_found() -> None:
    manifest = rendered({})["Service"]
    manifest["spec"]["sellector"] = {}
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(manifest, RELEASES[-1], strict=True)


def test_every_optional_object_is_there_when_asked_for_and_only_then() -> None:
    assert {"Ingress", "NetworkPolicy"} <= set(rendered(VALUES["everything"]))
    assert not {"Ingress", "NetworkPolicy"} & set(rendered({}))


def test_the_pod_runs_the_images_user_on_a_read_only_root() -> None:
    spec = pod({})
    container = spec["containers"][0]
    assert container["image"] == f"herald:{version()}"
    assert spec["securityContext"]["runAsUser"] == spec["securityContext"]["fsGroup"] == USER
    assert container["securityContext"]["readOnlyRootFilesystem"] is True
    assert container["securityContext"]["capabilities"]["drop"] == ["ALL"]
    assert {mount["mountPath"] for mount in container["volumeMounts"]} == {DATA, "/tmp"}


def test_kubernetes_sets_no_variable_that_herald_would_read_as_a_setting() -> None:
    """A service named herald would otherwise put HERALD_PORT=tcp://... into the pods of its namespace."""
    assert pod({})["enableServiceLinks"] is False


def test_the_pod_is_given_time_to_drain() -> None:
    spec = pod({"preStopSeconds": 12})
    pause = spec["containers"][0]["lifecycle"]["preStop"]["exec"]["command"][-1]
    assert pause == "import time; time.sleep(12)"
    assert spec["terminationGracePeriodSeconds"] >= 12 + 30


def test_settings_reach_the_server_as_they_were_written() -> None:
    data = rendered(VALUES["everything"])["ConfigMap"]["data"]
    assert data["HERALD_SESSIONS_MAX"] == "1000000"
    assert data["HERALD_RECORDS"] == "false"
    assert data["HERALD_DOMAIN"] == "example.org"


def test_a_changed_setting_restarts_the_pod() -> None:
    def checksum(values: dict[str, Any]) -> str:
        found: str = rendered(values)["StatefulSet"]["spec"]["template"]["metadata"]["annotations"]["checksum/config"]
        return found

    assert checksum({"domain": "a.example"}) != checksum({"domain": "b.example"})
