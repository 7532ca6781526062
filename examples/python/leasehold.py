"""The engine from Python: a binding by ctypes of the C interface (leasehold/c/leasehold.h).

    with Node(machine, id=1, data_dir="/var/lib/x", peers={1: "a:7101", 2: "b:7101", 3: "c:7101"}) as node:
        node.propose(b"apples 5", timeout=2)        # -> the result of machine.apply()
        node.read(timeout=2)                        # from here on the machine may be read: linearizable
"""

import ctypes
import os
import traceback

_OK, _DROPPED, _UNKNOWN = 0, 1, 2
LEASE, QUORUM, LOG = 0, 1, 2
ADD, PROMOTE, DEMOTE, REMOVE, MOVE, ADD_WITNESS = range(6)
_NS = 1_000_000_000


class Failed(Exception):
    """The engine refused; the text says what to do."""

    def __init__(self, status, text):
        super().__init__(text)
        self.status = status


class Dropped(Failed):
    """It was not done and will not be: try again."""


class Unknown(Failed):
    """It may have been done, or may still be."""


class _Error(ctypes.Structure):
    _fields_ = [("status", ctypes.c_int), ("text", ctypes.c_char * 1020)]


class _Command(ctypes.Structure):
    _fields_ = [("index", ctypes.c_uint64), ("term", ctypes.c_uint64), ("origin", ctypes.c_uint64),
                ("bytes", ctypes.c_void_p), ("size", ctypes.c_size_t)]


_DURABLE_INDEX = ctypes.CFUNCTYPE(ctypes.c_uint64, ctypes.c_void_p)
_APPLY = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.POINTER(_Command), ctypes.c_size_t, ctypes.c_uint64,
                          ctypes.c_void_p)


class _Machine(ctypes.Structure):
    # Without snapshots: the last three are NULL.
    _fields_ = [("size", ctypes.c_size_t), ("context", ctypes.c_void_p), ("durable_index", _DURABLE_INDEX),
                ("apply", _APPLY), ("make_durable", ctypes.c_void_p), ("take_snapshot", ctypes.c_void_p),
                ("install_snapshot", ctypes.c_void_p)]


class _Reply(ctypes.Structure):
    _fields_ = [("bytes", ctypes.c_void_p), ("size", ctypes.c_size_t), ("index", ctypes.c_uint64),
                ("term", ctypes.c_uint64), ("leader", ctypes.c_uint64)]


class _ReadPoint(ctypes.Structure):
    _fields_ = [("index", ctypes.c_uint64), ("lease", ctypes.c_int), ("stale", ctypes.c_int),
                ("leader", ctypes.c_uint64)]


class _State(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("id", ctypes.c_uint64), ("term", ctypes.c_uint64),
                ("leader", ctypes.c_uint64), ("role", ctypes.c_int), ("formed", ctypes.c_int),
                ("first", ctypes.c_uint64), ("last", ctypes.c_uint64), ("durable", ctypes.c_uint64),
                ("commit", ctypes.c_uint64), ("applied", ctypes.c_uint64), ("lease_left_ns", ctypes.c_int64),
                ("members", ctypes.c_uint64)]


def _load():
    library = ctypes.CDLL(os.environ.get("LEASEHOLD_LIBRARY", "libleasehold.so.0"))
    library.leasehold_version.restype = ctypes.c_char_p
    library.leasehold_options_new.restype = ctypes.c_void_p
    for name, arguments in {
            "options_free": [ctypes.c_void_p],
            "options_set": [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_char_p, ctypes.POINTER(_Error)],
            "node_open": [ctypes.c_void_p, ctypes.POINTER(_Machine), ctypes.c_void_p,
                          ctypes.POINTER(ctypes.c_void_p), ctypes.POINTER(_Error)],
            "node_close": [ctypes.c_void_p],
            "node_drain": [ctypes.c_void_p, ctypes.c_int64, ctypes.POINTER(_Error)],
            "node_state": [ctypes.c_void_p, ctypes.POINTER(_State), ctypes.POINTER(_Error)],
            "results_set": [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_char_p, ctypes.c_size_t],
            "propose": [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_size_t, ctypes.c_int64,
                        ctypes.POINTER(_Reply), ctypes.POINTER(_Error)],
            "reply_clear": [ctypes.POINTER(_Reply)],
            "read": [ctypes.c_void_p, ctypes.c_int, ctypes.c_int64, ctypes.c_int64,
                     ctypes.POINTER(_ReadPoint), ctypes.POINTER(_Error)],
            "change_member": [ctypes.c_void_p, ctypes.c_int, ctypes.c_uint64, ctypes.c_char_p, ctypes.c_int64,
                              ctypes.POINTER(_Error)],
            "transfer": [ctypes.c_void_p, ctypes.c_uint64, ctypes.c_int64, ctypes.POINTER(_Error)]}.items():
        getattr(library, f"leasehold_{name}").argtypes = arguments
    return library


_LIBRARY = _load()


def version():
    return _LIBRARY.leasehold_version().decode()


def _check(status, error):
    if status == _OK:
        return
    kind = {_DROPPED: Dropped, _UNKNOWN: Unknown}.get(status, Failed)
    raise kind(status, error.text.decode(errors="replace"))


class Node:
    """One replica. `machine` has apply(command) -> bytes, which has to be deterministic; everything is in memory, so
    the log is applied again at every start. apply() is called on a thread of the engine. Options are those of
    leasehold_options_set(), with _ for -; timeouts are seconds."""

    def __init__(self, machine, *, peers=None, **options):
        self._node = ctypes.c_void_p()
        self._machine = machine
        # The engine calls these as long as the node lives.
        self._callbacks = (_DURABLE_INDEX(lambda context: 0), _APPLY(self._apply))
        functions = _Machine(ctypes.sizeof(_Machine), None, *self._callbacks, None, None, None)
        error = _Error()
        words = [("peer", f"{number}={address}") for number, address in (peers or {}).items()]
        words += [(name.replace("_", "-"), str(value)) for name, value in options.items()]
        wanted = _LIBRARY.leasehold_options_new()
        try:
            for name, value in words:
                _check(_LIBRARY.leasehold_options_set(wanted, name.encode(), value.encode(), error), error)
            _check(_LIBRARY.leasehold_node_open(wanted, functions, None, self._node, error), error)
        finally:
            _LIBRARY.leasehold_options_free(wanted)

    def _apply(self, _context, commands, count, _last, results):
        for place in range(count):
            try:
                result = self._machine.apply(ctypes.string_at(commands[place].bytes, commands[place].size))
            except Exception:  # pylint: disable=broad-except
                # Another replica may have applied it: going on without it would tear the replicas apart.
                traceback.print_exc()
                os.abort()
            _LIBRARY.leasehold_results_set(results, place, result, len(result))

    def propose(self, command, timeout):
        """The result of apply(). Raises Dropped, Unknown."""
        reply, error = _Reply(), _Error()
        status = _LIBRARY.leasehold_propose(self._node, command, len(command), int(timeout * _NS), reply, error)
        result = ctypes.string_at(reply.bytes, reply.size) if reply.size else b""
        _LIBRARY.leasehold_reply_clear(reply)
        _check(status, error)
        return result

    def read(self, timeout, mode=LEASE, max_age=0):
        """From here on the machine may be read. True: under the leader's lease. Raises Dropped."""
        point, error = _ReadPoint(), _Error()
        _check(_LIBRARY.leasehold_read(self._node, mode, int(timeout * _NS), int(max_age * _NS), point, error), error)
        return bool(point.lease)

    def state(self):
        """The members of leasehold_state, by name."""
        state, error = _State(ctypes.sizeof(_State)), _Error()
        _check(_LIBRARY.leasehold_node_state(self._node, state, error), error)
        return {name: getattr(state, name) for name, _ in _State._fields_ if name != "size"}

    def change_member(self, change, number, timeout, address=None):
        error = _Error()
        text = None if address is None else address.encode()
        _check(_LIBRARY.leasehold_change_member(self._node, change, number, text, int(timeout * _NS), error), error)

    def transfer(self, to, timeout):
        error = _Error()
        _check(_LIBRARY.leasehold_transfer(self._node, to, int(timeout * _NS), error), error)

    def drain(self, timeout):
        error = _Error()
        _check(_LIBRARY.leasehold_node_drain(self._node, int(timeout * _NS), error), error)

    def close(self):
        if self._node:
            _LIBRARY.leasehold_node_close(self._node)
            self._node = ctypes.c_void_p()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
