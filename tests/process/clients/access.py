"""How the Python programs of this folder reach a node: plain, or by TLS and as a user if the test has set ACCESS_*
(secured.py)."""

import inspect
import os
import sys

import redis
from redis.backoff import NoBackoff
from redis.exceptions import NoPermissionError
from redis.retry import Retry
from redis.utils import str_if_bytes

SECURED = "ACCESS_CA" in os.environ
FORBIDDEN_KEY = "forbidden"
# Since release 5.
HAS_RESP3 = "protocol" in inspect.signature(redis.Redis).parameters


def check(condition, what):
    if not condition:
        sys.exit(f"redis-py: {what}")


def refuses(call, kind, what, said=""):
    """`kind`: the class of the exception, which has to say `said`."""
    try:
        answer = call()
    except kind as error:
        # Release 8 shows a category where others show the text.
        text = " ".join(map(str, error.args))
        check(said in text, f"{what}: {error!r} says {text!r}, not {said!r}")
        return
    except redis.RedisError as error:
        check(False, f"{what}: {error!r} is no {kind.__name__}")
    check(False, f"{what} was accepted: {answer!r}")


def settings(**changes):
    """The arguments of redis.Redis and of RedisCluster; `changes` come on top."""
    if not SECURED:
        return changes
    return {"ssl": True, "ssl_ca_certs": os.environ["ACCESS_CA"], "ssl_check_hostname": True,
            "username": os.environ["ACCESS_USER"], "password": os.environ["ACCESS_PASSWORD"], **changes}


def connect(port, **changes):
    return redis.Redis(host="127.0.0.1", port=port, **settings(**changes))


def refusals(port, **common):
    """What a node refuses, by the exceptions of the library."""
    common["retry"] = Retry(NoBackoff(), 0)

    def with_certificate(prefix, **changes):
        return connect(port, ssl_certfile=os.environ[f"{prefix}_CERT"], ssl_keyfile=os.environ[f"{prefix}_KEY"],
                       **common, **changes)

    nobody = {"username": None, "password": None}
    # Release 4 does not know the word.
    wrong_password = redis.AuthenticationError if HAS_RESP3 else redis.ResponseError
    refuses(connect(port, password="wrong", **common).ping, wrong_password, "a wrong password",
            "invalid username-password pair")
    refuses(connect(port, **nobody, **common).ping, redis.AuthenticationError, "no user",
            "HELLO must be called" if common.get("protocol") == 3 else "Authentication required")
    r = connect(port, **common)
    refuses(lambda: r.get(FORBIDDEN_KEY), NoPermissionError, "another key", "access a key")
    refuses(lambda: r.execute_command("LEASEHOLD", "MEMBER", "LIST"), NoPermissionError, "a command of operators",
            "'leasehold|member' command")
    refuses(connect(port, ssl_ca_certs=os.environ["ACCESS_OTHER_CA"], **common).ping, redis.ConnectionError,
            "a server of another authority", "certificate verify failed")
    refuses(with_certificate("ACCESS_OTHER").ping, redis.ConnectionError, "a certificate of another authority")
    check(str_if_bytes(with_certificate("ACCESS", **nobody).acl_whoami()) == os.environ["ACCESS_USER"],
          "the user of a certificate")
    refuses(redis.Redis(host="127.0.0.1", port=port, **common).ping, redis.RedisError, "a client without TLS")
