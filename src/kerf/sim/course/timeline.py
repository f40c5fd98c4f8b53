"""Carries out the steps of a scenario: what people and the cloud do to the cluster.

A step that names something that is not there is a mistake in the scenario and ends the run with the place of the step;
only the run can tell, because controllers give names.
"""

from kerf.clouds.fake import FakeCloud
from kerf.errors import ApiError, DecodeError, InputError
from kerf.model.constraints import NODE_POOL
from kerf.model.instancetypes import price_text
from kerf.model.times import duration_text, instant_text
from kerf.ports import AlreadyExists, Clock, NotFound
from kerf.sim.course.observer import Observer
from kerf.sim.course.steps import (
    Apply,
    Delete,
    Fault,
    Interrupt,
    LostReply,
    NodeCondition,
    Price,
    Refuse,
    Restart,
    Scale,
    Step,
    StockOut,
    Throttle,
)
from kerf.sim.kubernetes.device_plugins import DevicePlugins
from kerf.sim.kubernetes.scheduler import Scheduler
from kerf.sim.objects import Json, key_of, labels_of, merged, shown, with_condition


class Timeline:
    """One for each run."""

    def __init__(
        self,
        scheduler: Scheduler,
        clock: Clock,
        cloud: FakeCloud,
        plugins: DevicePlugins,
        observer: Observer,
    ) -> None:
        self._scheduler, self._api = scheduler, scheduler.api
        self._clock, self._cloud, self._plugins, self._observer = clock, cloud, plugins, observer

    def act(self, step: Step) -> None:
        """Do it now. Raises InputError when it cannot be done."""
        try:
            self._act(step)
        except NotFound as error:
            raise DecodeError(step.path, "an object that is there then", f"<{error}>", place=step.place) from error
        except ApiError as error:
            raise InputError(f"{step.place}: {step.path}: {error}") from error

    def _act(self, step: Step) -> None:
        match step.action:
            case Scale() as scale:
                self._scale(scale)
            case StockOut() as stock_out:
                self._sell_out(stock_out)
            case Price() as price:
                self._price(price)
            case Fault() as fault:
                self._plugins.add_fault(fault.made())
                pool = f"nodepool/{fault.node_pool}" if fault.node_pool else "cluster"
                self._observer.note("device fault", pool, f"{fault.kind}, nodes: {fault.nodes}")
            case Interrupt() as interrupt:
                self._interrupt(interrupt, step)
            case Throttle() as throttle:
                self._cloud.throttle(self._clock.now_s() + throttle.for_s, throttle.retry_after_s)
                self._observer.note("throttling", "cloud", f"for {duration_text(throttle.for_s)}")
            case Refuse() as refuse:
                self._refuse(refuse)
            case LostReply() as lost:
                self._cloud.lose_replies(lost.launches)
                self._observer.note("lost replies", "cloud", f"of the next {lost.launches}")
            case Apply() as apply:
                for obj in apply.objects:
                    self._apply(obj)
            case Delete() as delete:
                self._observer.note("delete", shown((delete.kind, delete.namespace, delete.name)))
                self._api.delete(delete.kind, delete.namespace, delete.name)
            case NodeCondition() as condition:
                self._condition(condition)
            case Restart():
                raise AssertionError("the runner of Kerf restarts it")

    def _condition(self, condition: NodeCondition) -> None:
        held = self._api.get("Node", "", condition.node)
        if held is None:
            raise NotFound(f"Node {condition.node} not found")
        self._observer.note("condition", f"node/{condition.node}", f"{condition.type} {condition.status}")
        reported = {"type": condition.type, "status": condition.status, "reason": condition.type}
        conditions = with_condition(held, reported, instant_text(self._clock.now_s()))
        self._api.patch("Node", "", condition.node, {"status": {"conditions": conditions}}, subresource="status")

    def _scale(self, scale: Scale) -> None:
        held = self._api.get(scale.kind, scale.namespace, scale.name)
        if held is None:
            raise NotFound(f"{scale.kind} {scale.namespace}/{scale.name} not found")
        before = held["spec"].get("replicas", 1)
        regards = f"{scale.kind.lower()}/{scale.namespace}/{scale.name}"
        self._observer.note("scale", regards, f"replicas {before} -> {scale.replicas}")
        self._api.patch(scale.kind, scale.namespace, scale.name, {"spec": {"replicas": scale.replicas}})

    def _sell_out(self, stock_out: StockOut) -> None:
        now_s = self._clock.now_s()
        until_s = float("inf") if stock_out.for_s is None else now_s + stock_out.for_s
        selection = (stock_out.instance_type, stock_out.zone, stock_out.capacity_type)
        self._cloud.sell_out(*selection, until_s=until_s)
        what = " ".join(word for word in selection if word) or "everything"
        self._observer.note("stock-out", "cloud", f"{what}, {_span(stock_out.for_s)}")

    def _refuse(self, refuse: Refuse) -> None:
        until_s = float("inf") if refuse.for_s is None else self._clock.now_s() + refuse.for_s
        self._scheduler.refuse(refuse.namespace, refuse.labels, refuse.message, until_s)
        self._observer.note("refusal", "scheduler", f"{refuse.message}, {_span(refuse.for_s)}")

    def _price(self, price: Price) -> None:
        words = (price.instance_type, price.zone, price.capacity_type)
        what = " ".join(word for word in words if word)
        self._observer.note("price", "cloud", f"{what}: {price_text(price.price_micro)} {self._cloud.currency}/h")
        self._cloud.set_price(price.price_micro, price.instance_type, price.zone, price.capacity_type)

    def _interrupt(self, interrupt: Interrupt, step: Step) -> None:
        running = [
            instance
            for instance in sorted(self._cloud.instances, key=lambda i: (i.launched_s, i.provider_id))
            if not self._cloud.is_terminating(instance.provider_id)
            and not instance.is_interrupted
            and interrupt.node_pool in ("", self._pool_of(instance.claim_name))
        ]
        if len(running) < interrupt.nodes:
            expected = f"at least {interrupt.nodes} running instances then"
            raise DecodeError(step.path, expected, len(running), place=step.place)
        for instance in running[: interrupt.nodes]:
            self._cloud.interrupt(instance.provider_id)

    def _pool_of(self, claim_name: str) -> str:
        claim = self._api.get("NodeClaim", "", claim_name)
        return "" if claim is None else labels_of(claim).get(NODE_POOL, "")

    def create(self, obj: Json) -> bool:
        """Whether the object is there now; a refusal by admission is noted. Raises AlreadyExists."""
        try:
            self._api.create(obj)
        except AlreadyExists:
            raise
        except ApiError as error:
            self._observer.note("refused", shown(key_of(obj)), str(error))
            return False
        return True

    def _apply(self, obj: Json) -> None:
        """As `kubectl apply`, but that fields the new object does not name stay only in its metadata and status.

        The status of a NodeClass is what the object says, where it has one."""
        key = key_of(obj)
        held = self._api.get(*key)
        if held is None:
            if self.create(obj):
                self._observer.note("apply", shown(key), "created")
            return
        self._observer.note("apply", shown(key), "changed")
        metadata = merged(
            held["metadata"], {k: v for k, v in obj["metadata"].items() if k in ("labels", "annotations")}
        )
        kept = {field: held[field] for field in ("status",) if field in held}
        changed = self._api.update({**obj, "metadata": metadata, **kept})
        if obj["kind"].endswith("NodeClass") and "status" in obj:
            # No provider is played that would write it.
            self._api.update({**changed, "status": obj["status"]}, subresource="status")


def _span(for_s: int | None) -> str:
    return "until the end" if for_s is None else f"for {duration_text(for_s)}"
