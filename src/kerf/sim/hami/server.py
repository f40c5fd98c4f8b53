"""HAMi's scheduler extender and webhook over HTTP, for a real kube-scheduler and a real API server.

The extender is `extender`, the webhook's rules are `sharing.hami.admission`. Here is how they are asked:
`POST /filter` and `/bind` in the form of `k8s.io/kube-scheduler/extender/v1`, `POST /webhook` in that of
`admission.k8s.io/v1`, where a change of the pod is a JSON patch. HAMi answers a refusal with status 200 too.
"""

import base64
import json
from collections.abc import Iterator

from aiohttp import web

from kerf.errors import DecodeError
from kerf.model.pods import DEFAULT_SCHEDULER, HAMI_SCHEDULER, Pod
from kerf.sharing.hami.admission import IGNORE_LABEL, Admitted, Denied, admit, quota_refusal
from kerf.sim.hami.extender import Extender, ExtenderCache, pod_of
from kerf.sim.objects import Json

_LARGEST_REQUEST = 32 * 1024 * 1024


def review(cache: ExtenderCache, asked: Json) -> Json:
    """AdmissionReview of a new pod, answered: HAMi's scheduler and defaults as a JSON patch, or its refusal."""
    request = asked["request"]
    answer: Json = {"uid": request["uid"], "allowed": True}
    raw, namespace = request.get("object") or {}, request.get("namespace") or "default"
    # The API server makes the name of a generated pod only after this.
    metadata = {"name": "new", **(raw.get("metadata") or {}), "namespace": namespace}
    try:
        pod = pod_of({**raw, "metadata": metadata})
        # A spec of a wrong form has no containers. HAMi reads one that has, also where the API server refuses it.
        wrong: object = pod.invalid if not pod.spec.containers else None
    except DecodeError as error:
        wrong = error
    if wrong is not None:
        answer["warnings"] = [f"HAMi left the pod as it is, because it cannot be read: {wrong}"]
    else:
        answer |= _admission(cache, raw["spec"], pod)
    return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": answer}


def _admission(cache: ExtenderCache, raw_spec: Json, pod: Pod) -> Json:
    spec, config = pod.spec, cache.family.config
    outcome = admit(spec.init_containers, spec.containers, spec.scheduler_name, config, has_node=bool(pod.node_name))
    if isinstance(outcome, Admitted):
        outcome = quota_refusal(outcome, config, cache.quotas(pod.namespace)) or outcome
    if isinstance(outcome, Denied):
        reason = "Forbidden" if outcome.code == 403 else "InternalError"
        return {"allowed": False, "status": {"code": outcome.code, "reason": reason, "message": outcome.message}}
    if outcome.scheduler_name not in (DEFAULT_SCHEDULER, HAMI_SCHEDULER):
        return {"status": {"code": 200, "message": "pod already has different scheduler assigned"}}
    operations = list(_patch(raw_spec, outcome, spec.scheduler_name))
    if not operations:
        return {}
    return {"patchType": "JSONPatch", "patch": base64.b64encode(json.dumps(operations).encode()).decode()}


def _patch(spec: Json, admitted: Admitted, scheduler_name: str) -> Iterator[Json]:
    """The operations that make of a pod's spec what HAMi's webhook makes of it."""
    if admitted.scheduler_name != scheduler_name:
        yield {"op": "add", "path": "/spec/schedulerName", "value": admitted.scheduler_name}
    for part in ("initContainers", "containers"):
        for index, container in enumerate(spec.get(part) or ()):
            path, name = f"/spec/{part}/{index}", container["name"]
            limits = {resource: str(value) for held, resource, value in admitted.changes if held == name}
            if limits:
                resources = container.get("resources") or {}
                changed = {**resources, "limits": {**(resources.get("limits") or {}), **limits}}
                yield {"op": "add", "path": f"{path}/resources", "value": changed}
            variables = [{"name": key, "value": value} for held, key, value in admitted.environment if held == name]
            if variables:
                yield {"op": "add", "path": f"{path}/env", "value": [*(container.get("env") or ()), *variables]}


def webhook_configuration(url: str, ca_bundle: bytes) -> Json:
    """The MutatingWebhookConfiguration by which an API server asks `url` about new pods, as HAMi's chart writes it.

    `ca_bundle` is PEM. While the webhook is away pods enter as they are, like with HAMi.
    """
    key, value = IGNORE_LABEL
    selector = {"matchExpressions": [{"key": key, "operator": "NotIn", "values": [value]}]}
    webhook = {
        "name": "vgpu.hami.io",
        "admissionReviewVersions": ["v1"],
        "clientConfig": {"url": url, "caBundle": base64.b64encode(ca_bundle).decode()},
        "failurePolicy": "Ignore",
        "matchPolicy": "Equivalent",
        "reinvocationPolicy": "Never",
        "sideEffects": "None",
        "timeoutSeconds": 10,
        "namespaceSelector": selector,
        "objectSelector": selector,
        "rules": [
            {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"], "scope": "*"}
        ],
    }
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "MutatingWebhookConfiguration",
        "metadata": {"name": "hami-webhook"},
        "webhooks": [webhook],
    }


def application(extender: Extender) -> web.Application:
    """The HTTP application: POST /filter, /bind, /webhook; GET /healthz, which is well once the cache is complete."""

    async def filtered(request: web.Request) -> web.Response:
        return web.json_response(await extender.filter(await _object_of(request)))

    async def bound(request: web.Request) -> web.Response:
        return web.json_response(await extender.bind(await _object_of(request)))

    async def reviewed(request: web.Request) -> web.Response:
        asked = await _object_of(request)
        if not isinstance(asked.get("request"), dict) or "uid" not in asked["request"]:
            raise web.HTTPBadRequest(text="expected an AdmissionReview with a request")
        return web.json_response(review(extender.cache, asked))

    async def health(request: web.Request) -> web.Response:
        del request
        if not extender.cache.is_synced:
            raise web.HTTPServiceUnavailable(text="the watches have not reported everything yet")
        return web.Response(text="ok")

    served = web.Application(client_max_size=_LARGEST_REQUEST)
    served.router.add_post("/filter", filtered)
    served.router.add_post("/bind", bound)
    served.router.add_post("/webhook", reviewed)
    served.router.add_get("/healthz", health)
    return served


async def _object_of(request: web.Request) -> Json:
    try:
        body = json.loads(await request.read())
    except (ValueError, RecursionError) as error:
        raise web.HTTPBadRequest(text=f"expected JSON, got: {error}") from error
    if not isinstance(body, dict):
        raise web.HTTPBadRequest(text=f"expected a JSON object, got {type(body).__name__}")
    return body
