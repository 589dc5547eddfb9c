"""Every kind of loop-bound primitive made at import, each marked with its codes, beside clean look-alikes."""

# Every fault in here is planted; the file is read by tests/unit/test_lint.py and never imported.
# ruff: noqa: I001, N817, B039, PTH123, C400, B008, RUF009, E731, PLC3002, UP033, RET504, RUF012, F821
# fmt: off

from __future__ import annotations

import asyncio
import asyncio as a
import asyncio.locks
import dataclasses
import functools
import multiprocessing
import queue
import threading
from asyncio import Lock as L, Queue, locks
from asyncio.queues import LifoQueue as Stack
from collections import defaultdict
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import cache, partial
from typing import TYPE_CHECKING, Annotated

import aiohttp
import anyio
import httpx
from anyio import CapacityLimiter
from pydantic import BaseModel, Field

# At module level ---------------------------------------------------------------------------------------

lock = asyncio.Lock()  # expect: LOOP101
semaphore = asyncio.Semaphore(3)  # expect: LOOP101
bounded = asyncio.BoundedSemaphore(3)  # expect: LOOP101
event = a.Event()  # expect: LOOP101
condition = a.Condition()  # expect: LOOP101
jobs = Queue()  # expect: LOOP101
typed_jobs = Queue[int](maxsize=3)  # expect: LOOP101
priority = asyncio.PriorityQueue()  # expect: LOOP101
stack = Stack()  # expect: LOOP101
barrier = asyncio.Barrier(2)  # expect: LOOP101
answer = asyncio.Future()  # expect: LOOP101
typed_answer: asyncio.Future[int] = asyncio.Future[int]()  # expect: LOOP101
loops_answer = asyncio.new_event_loop().create_future()  # expect: LOOP105
renamed = L()  # expect: LOOP101
by_module = locks.Lock()  # expect: LOOP101
by_inner_module = asyncio.locks.Lock()  # expect: LOOP101
two, three = asyncio.Lock(), asyncio.Event()  # expect: LOOP101 LOOP101
anyio_lock = anyio.Lock()  # expect: LOOP101
anyio_event = anyio.Event()  # expect: LOOP101
anyio_condition = anyio.Condition()  # expect: LOOP101
anyio_semaphore = anyio.Semaphore(1)  # expect: LOOP101
limiter = CapacityLimiter(4)  # expect: LOOP101
sender, receiver = anyio.create_memory_object_stream[int](4)  # expect: LOOP101
session = aiohttp.ClientSession()  # expect: LOOP101
connected = aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=3))  # expect: LOOP101 LOOP101
variable = ContextVar("variable", default=asyncio.Lock())  # expect: LOOP101
if (walrus := asyncio.Lock()) and True:  # expect: LOOP101
    nested = asyncio.Event()  # expect: LOOP101
try:
    tried = asyncio.Lock()  # expect: LOOP101
except RuntimeError:
    tried = asyncio.Lock()  # expect: LOOP101
with open(__file__) as opened, asyncio.Semaphore(1) as odd:  # expect: LOOP101
    within = asyncio.Lock()  # expect: LOOP101
match opened:
    case _:
        matched = asyncio.Lock()  # expect: LOOP101
if TYPE_CHECKING:
    typed_only = object()
else:
    run_too = asyncio.Lock()  # expect: LOOP101

# In containers -----------------------------------------------------------------------------------------

in_list = [
    "text",
    asyncio.Lock(),  # expect: LOOP101
]
in_dict = {"a": asyncio.Lock(), "b": {"c": (asyncio.Event(),)}}  # expect: LOOP101 LOOP101
in_comprehension = {name: asyncio.Lock() for name in "ab"}  # expect: LOOP101
in_generator = list(asyncio.Semaphore(1) for _ in range(3))  # expect: LOOP101
in_call = dict.fromkeys("ab", asyncio.Lock())  # expect: LOOP101
in_choice = None if opened else asyncio.Lock()  # expect: LOOP101

# In classes, defaults and decorators -------------------------------------------------------------------


class Shared:
    lock = asyncio.Lock()  # expect: LOOP102
    waiting: Queue[int] = Queue()  # expect: LOOP102

    class Inner:
        lock = asyncio.Lock()  # expect: LOOP102

    def work(self, lock=asyncio.Lock()):  # expect: LOOP103
        return lock


@dataclass
class Data:
    event: asyncio.Event = asyncio.Event()  # expect: LOOP104
    lock: asyncio.Lock = field(default=asyncio.Lock())  # expect: LOOP104
    shared = asyncio.Lock()  # expect: LOOP102


@dataclasses.dataclass(frozen=True)
class FrozenData:
    lock: asyncio.Lock = dataclasses.field(default=asyncio.Lock())  # expect: LOOP104


class Model(BaseModel):
    lock: object = Field(default=asyncio.Lock())  # expect: LOOP104


def with_default(lock=asyncio.Lock(), *, event=a.Event()):  # expect: LOOP103 LOOP103
    return lock, event


async def with_async_default(limit=asyncio.Semaphore(2)):  # expect: LOOP103
    return limit


in_lambda_default = lambda lock=asyncio.Lock(): lock  # expect: LOOP101


def limited(semaphore):
    return lambda function: function


@limited(asyncio.Semaphore(3))  # expect: LOOP101
def decorated():
    pass


# By something that is called at import ------------------------------------------------------------------

Alias = asyncio.Lock
by_alias = Alias()  # expect: LOOP105
make_partial = partial(asyncio.Semaphore, 3)
by_partial = make_partial()  # expect: LOOP105
by_inner_partial = functools.partial(asyncio.Lock)()  # expect: LOOP105
make_lambda = lambda: asyncio.Lock()
by_lambda = make_lambda()  # expect: LOOP105
by_inner_lambda = (lambda: asyncio.Lock())()  # expect: LOOP105


def make():
    return asyncio.Lock()


def make_named():
    made = asyncio.Lock()
    if made:
        return made
    return None


def make_deeper():
    return make_named()


by_function = make()  # expect: LOOP105
by_name = make_named()  # expect: LOOP105
by_depth = make_deeper()  # expect: LOOP105


class Constructed:
    def __init__(self):
        self.lock = asyncio.Lock()

    @classmethod
    def create(cls):
        return asyncio.Queue()


class Inherited(Constructed):
    pass


class TwiceInherited(Inherited):
    def __init__(self):
        super().__init__()
        self.name = "deep"


class NotInherited(Constructed):
    def __init__(self):
        self.name = "without super: no lock"


class OwnLock(asyncio.Lock):
    pass


@dataclass
class PerInstance:
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    event: asyncio.Event = field(default_factory=lambda: asyncio.Event())


by_constructor = Constructed()  # expect: LOOP105
by_base = Inherited()  # expect: LOOP105
by_base_of_base = TwiceInherited()  # expect: LOOP105
by_no_base = NotInherited()
by_subclass = OwnLock()  # expect: LOOP105
by_data = PerInstance()  # expect: LOOP105
by_method = Constructed.create()  # expect: LOOP105

# Filled later, for all loops together -------------------------------------------------------------------

per_key = defaultdict(asyncio.Lock)  # expect: LOOP106
per_key_lambda = defaultdict(lambda: asyncio.Semaphore(2))  # expect: LOOP106


@functools.cache
def cached():  # expect: LOOP107
    return asyncio.Lock()


@functools.lru_cache(maxsize=None)
def cached_by_key(key):  # expect: LOOP107
    made = asyncio.Lock()
    return made


get_cached = cache(asyncio.Lock)  # expect: LOOP107
get_sized = functools.lru_cache(maxsize=8)(make)  # expect: LOOP107
by_cached = get_cached()  # expect: LOOP105

lazy = None
registry = {}
pending = []


def lazily():
    global lazy
    if lazy is None:
        lazy = asyncio.Lock()  # expect: LOOP108
    return lazy


async def lazily_by_name():
    global lazy, unseen
    made = asyncio.Lock()
    lazy = made  # expect: LOOP108
    unseen = asyncio.Event()  # expect: LOOP108


def lazily_by_key(key):
    if key not in registry:
        registry[key] = asyncio.Lock()  # expect: LOOP108
    pending.append(asyncio.Event())  # expect: LOOP108
    return registry.setdefault(key, asyncio.Lock())  # expect: LOOP108


class Lazy:
    lock = None
    by_name = {}

    @classmethod
    def get(cls):
        if cls.lock is None:
            cls.lock = asyncio.Lock()  # expect: LOOP108
        return cls.lock

    def get_by_name(self, name):
        type(self).lock = asyncio.Lock()  # expect: LOOP108
        self.__class__.lock = asyncio.Lock()  # expect: LOOP108
        Lazy.lock = asyncio.Lock()  # expect: LOOP108
        Lazy.by_name[name] = asyncio.Lock()  # expect: LOOP108
        return self.lock


# id(loop) as a key ---------------------------------------------------------------------------------------


def by_id(loop):
    if id(loop) in registry:  # expect: LOOP109
        return registry[id(loop)]  # expect: LOOP109
    registry.setdefault(id(asyncio.get_running_loop()), 1)  # expect: LOOP109
    return {id(loop): 1, ("key", id(loop)): 2}  # expect: LOOP109 LOOP109


def by_named_id():
    running = asyncio.get_running_loop()
    key = id(running)  # expect: LOOP109
    return registry.get(key)


# Excuses -------------------------------------------------------------------------------------------------

excused = asyncio.Lock()  # loop-ok: this program has one loop, for ever
excused_below = asyncio.Semaphore(
    3,  # loop-ok: the line of the fault is any that it spans
)
without_reason = asyncio.Lock()  # loop-ok:  # expect: LOOP100 LOOP101
without_colon = asyncio.Lock()  # loop-ok  # expect: LOOP100 LOOP101
in_a_string = [asyncio.Lock(), "# loop-ok: this is text"]  # expect: LOOP101

# Clean look-alikes ---------------------------------------------------------------------------------------

thread_lock = threading.Lock()
thread_event = threading.Event()
thread_queue = queue.Queue()
process_lock = multiprocessing.Lock()
client = httpx.AsyncClient()
factory = asyncio.Lock
factories = {"lock": asyncio.Lock, "lambda": lambda: asyncio.Event()}
thread_locks = defaultdict(threading.Lock)
annotated: asyncio.Lock | None = None
in_annotation: Annotated[asyncio.Lock, "a type"]
text = "asyncio.Lock()"
never_called = partial(asyncio.Lock)


class Lock:
    """Not asyncio's, whatever its name."""


own_lock = Lock()


class Clean:
    lock: asyncio.Lock

    def __init__(self, lock: asyncio.Lock | None = None) -> None:
        self.lock = lock or asyncio.Lock()
        self.by_name = {}

    def add(self, name):
        self.by_name[name] = asyncio.Lock()
        self.by_name.setdefault(name, asyncio.Lock())


def clean(loop, registry):
    here = {}
    here["lock"] = asyncio.Lock()
    registry["lock"] = asyncio.Lock()
    print(f"on loop {id(loop)}", id(here))
    lazy = asyncio.Lock()
    return lazy, here[id(registry)]


async def clean_too():
    class Within:
        lock = asyncio.Lock()

    def inner(lock=asyncio.Lock()):
        return lock

    async with aiohttp.ClientSession() as session, asyncio.Lock():
        return Within, inner, session


def loops_in_itself():
    return loops_in_itself()


around = loops_in_itself()
around_name = around_name() if False else None

if __name__ == "__main__":
    only_as_a_program = asyncio.Lock()
    asyncio.run(clean_too())
