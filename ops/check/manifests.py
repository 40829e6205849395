"""Checks of the Compose file, the Kubernetes manifests and the Dockerfile that no schema makes."""

import json
import re
import sys
from pathlib import Path

import jsonschema
import yaml

OPS = Path("ops")
# Every program of a service, and its number of processes: None for any.
SERVICES = {"base": None, "cell": None, "db": 1, "director": None, "login": None, "signer": 1, "console": 1}
failures = []


def check(condition, message):
    if not condition:
        failures.append(message)


def compose(schema):
    text = (OPS / "compose/compose.yml").read_text()
    document = yaml.safe_load(text)
    # The schema is older than this key.
    check(document.pop("name", None) == "annals", "compose.yml has no name")
    validator = jsonschema.Draft7Validator(schema)
    for error in validator.iter_errors(document):
        failures.append(f"compose.yml: {'/'.join(map(str, error.path))}: {error.message}")
    secrets = document["secrets"]
    started = set()
    for name, service in document["services"].items():
        where = f"compose.yml: {name}"
        check(service.get("read_only"), f"{where} can write to its image")
        check(service.get("cap_drop") == ["ALL"], f"{where} keeps capabilities")
        check("user" in service, f"{where} runs as root")
        check("stop_grace_period" in service, f"{where} has no time to drain")
        for secret in service.get("secrets", []):
            source = secret["source"] if isinstance(secret, dict) else secret
            check(source in secrets, f"{where} uses the secret {source}, which is not defined")
        program = service["command"][0]
        if program.startswith("annals-"):
            started.add(program.removeprefix("annals-"))
    check(started == set(SERVICES), f"compose.yml starts {sorted(started)}")
    return len(document["services"])


def kubernetes():
    documents = []
    listed = yaml.safe_load((OPS / "kubernetes/kustomization.yaml").read_text())["resources"]
    for path in sorted((OPS / "kubernetes").glob("*.yaml")):
        if path.name == "kustomization.yaml":
            continue
        check(path.name in listed, f"{path} is not in kustomization.yaml")
        documents += [document for document in yaml.safe_load_all(path.read_text()) if document]
    by_kind = {}
    for document in documents:
        by_kind.setdefault(document["kind"], {})[document["metadata"]["name"]] = document
    for service, count in SERVICES.items():
        name = f"annals-{service}"
        workload = by_kind["StatefulSet" if count else "Deployment"].get(name)
        if not workload:
            failures.append(f"kubernetes: there is no {name}")
            continue
        if count:
            check(workload["spec"]["replicas"] == count, f"{name} must have {count} process")
        else:
            check(name in by_kind["PodDisruptionBudget"], f"{name} has no PodDisruptionBudget")
    for kind in ("StatefulSet", "Deployment"):
        for name, workload in by_kind[kind].items():
            pod = workload["spec"]["template"]["spec"]
            labels = workload["spec"]["template"]["metadata"]["labels"]
            wanted = workload["spec"]["selector"]["matchLabels"]
            check(wanted.items() <= labels.items(), f"{name} does not select its own pods")
            check(pod["terminationGracePeriodSeconds"] >= 60, f"{name} has no time to drain")
            check(pod["securityContext"]["runAsNonRoot"], f"{name} may run as root")
            volumes = {volume["name"] for volume in pod["volumes"]}
            volumes |= {claim["metadata"]["name"] for claim in workload["spec"].get("volumeClaimTemplates", [])}
            for container in pod["containers"]:
                check("livenessProbe" in container, f"{name} has no liveness probe")
                check(container["resources"]["requests"], f"{name} requests nothing")
                check(container["securityContext"]["readOnlyRootFilesystem"], f"{name} can write to its image")
                mounted = {mount["name"] for mount in container["volumeMounts"]}
                check(mounted == volumes, f"{name} mounts {sorted(mounted)} of {sorted(volumes)}")
                ports = {port["name"] for port in container["ports"]}
                for probe in ("livenessProbe", "readinessProbe", "startupProbe"):
                    port = container.get(probe, {}).get("httpGet", {}).get("port")
                    check(port is None or port in ports, f"{name} is probed at the unknown port {port}")
    return len(documents)


def dockerfile():
    text = (OPS / "oci/Dockerfile").read_text().replace("\\\n", " ")
    stages = set()
    final = []
    for line in text.splitlines():
        words = line.split()
        if words[:1] == ["FROM"]:
            final = []
            if len(words) == 4 and words[2] == "AS":
                stages.add(words[3])
        final.append(line)
        for source in re.findall(r"--from=(\S+)", line):
            check(source in stages, f"Dockerfile copies from the unknown stage {source}")
    copied = {line.split()[-2] for line in final if line.startswith("COPY") and "--from" not in line}
    for path in copied:
        check(Path(path).exists(), f"Dockerfile copies {path}, which does not exist")
    check(any(line.startswith("USER ") and "root" not in line for line in final), "Dockerfile: the image runs as root")
    for service in SERVICES:
        check(f"annals-{service}" in text, f"Dockerfile lacks annals-{service}")


compose_count = compose(json.loads(Path(sys.argv[1]).read_text()))
document_count = kubernetes()
dockerfile()
for failure in failures:
    print(f"check-ops: FAILED: {failure}", file=sys.stderr)
if failures:
    sys.exit(1)
print(f"check-ops: {compose_count} services of Compose, {document_count} documents of Kubernetes, the Dockerfile")
