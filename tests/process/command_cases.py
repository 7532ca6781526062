"""The cases of commands.py. Each is a story: commands, one a line, told to Leasehold and to a real
redis-server, in RESP2 and in RESP3. `covers` names commands of the table, and every command of the
table must be covered.

same(covers, story)                 every reply is the same, byte for byte
unordered(covers, story)            the same but for the order of the elements of arrays
differs(covers, reason, story, ours) the last reply differs, on purpose; ours fits the pattern. The
                                    replies before it are the same
ours(covers, story, last)           Redis has no such command; the last reply fits the pattern
"""

import shlex
import time


class Case:
    def __init__(self, kind, covers, story, reason=None, pattern=None):
        self.kind = kind
        self.covers = covers.split()
        self.story = [shlex.split(line) for line in story.splitlines() if line.strip()]
        self.reason = reason
        self.pattern = pattern.encode() if pattern is not None else None

    def __repr__(self):
        return f"{self.kind} {' '.join(self.covers)}: {self.story}"


CASES = []


def same(covers, story):
    CASES.append(Case("same", covers, story))


def unordered(covers, story):
    CASES.append(Case("unordered", covers, story))


def differs(covers, reason, story, ours):
    CASES.append(Case("differs", covers, story, reason, ours))


def ours(covers, story, last):
    CASES.append(Case("ours", covers, story, None, last))


LATER = int(time.time()) + 100_000_000  # a second
TEN_YEARS = "a key that ends by itself lives for ten years at most"
FRIENDLY = "the error says more"
LIMITS = "the limits are other ones"
OTHER_SERVER = "it tells about the server"
ONE_STORE = "every value is a string"
STRICTER = "a transaction is refused whole when a part of it is wrong in itself"

# --- strings ---------------------------------------------------------------------------------------

same("get set", """
    GET k
    SET k v
    GET k
    SET k ''
    GET k
    SET k v NX
    SET k w XX
    GET k
    SET new v XX
    SET new v NX
    SET k x GET
    SET nothing x GET
    SET k y XX GET
    SET nothing2 y XX GET
    SET k z NX GET
    GET k
    SET k z KEEPTTL
    GET
    GET a b
    SET k
    get k
    sEt k v nx gEt
""")
differs("set", FRIENDLY, "SET k v NX XX", r"-ERR syntax error at 'XX'")
differs("set", FRIENDLY, "SET k v nonsense", r"-ERR syntax error at 'nonsense'")
same("mget", """
    SET a 1
    SET b 2
    MGET a
    MGET a nothing b a
    MGET
""")
same("mset", """
    MSET a 1 b 2
    MGET a b
    MSET a 3 a 4
    GET a
    MSET a
    MSET a 1 b
    MSET
""")
same("msetnx", """
    MSETNX a 1 b 2
    MSETNX b 3 c 4
    MGET a b c
    MSETNX d 1 d 2
    GET d
    MSETNX a
    MSETNX a 1 b
""")
same("setnx", """
    SETNX k 1
    SETNX k 2
    GET k
    SETNX k
""")
same("getset", """
    GETSET k 1
    GETSET k 2
    GET k
    GETSET k
""")
same("getdel", """
    GETDEL k
    SET k v
    GETDEL k
    GET k
    GETDEL
""")
same("getex", """
    GETEX k
    SET k v
    GETEX k
    GETEX k PERSIST
    GETEX k nonsense
    GETEX
""")
same("append strlen", """
    APPEND k abc
    APPEND k def
    GET k
    STRLEN k
    APPEND k ''
    STRLEN nothing
    APPEND new ''
    EXISTS new
    APPEND k
    STRLEN
""")
same("getrange substr", """
    SET k 'This is a string'
    GETRANGE k 0 3
    GETRANGE k -3 -1
    GETRANGE k 0 -1
    GETRANGE k 10 100
    GETRANGE k 5 3
    GETRANGE k -1 -5
    GETRANGE k -100 3
    GETRANGE k 0 -100
    GETRANGE k 100 200
    GETRANGE k -200 -100
    GETRANGE nothing 0 -1
    GETRANGE k x 1
    GETRANGE k 1 x
    GETRANGE k 0
    SUBSTR k 5 6
    SET empty ''
    GETRANGE empty 0 -1
""")
same("setrange", """
    SET k 'Hello World'
    SETRANGE k 6 Redis
    GET k
    SETRANGE new 3 x
    GET new
    SETRANGE k 20 x
    GET k
    SETRANGE nothing 0 ''
    EXISTS nothing
    SETRANGE k 0 ''
    SETRANGE k -1 x
    SETRANGE k x x
    SETRANGE k 1
""")
differs("setrange", LIMITS, "SETRANGE k 4294967296 x", r"-ERR the value would be longer than")
same("incr decr incrby decrby", """
    INCR n
    INCRBY n 10
    DECR n
    DECRBY n 20
    GET n
    INCRBY n -5
    SET t text
    INCR t
    DECR t
    INCRBY t 1
    DECRBY t 1
    SET most 9223372036854775807
    INCR most
    GET most
    SET least -9223372036854775808
    DECR least
    DECRBY n 9223372036854775807
    INCRBY n x
    INCRBY n 1.5
    INCRBY n 9223372036854775808
    DECRBY n x
    SET blank ' 1'
    INCR blank
    SET zeros 007
    INCR zeros
    SET plus +1
    INCR plus
    SET minuszero -0
    INCR minuszero
    SET empty ''
    INCR empty
    DECRBY n -9223372036854775808
    INCR
    INCR a b
    INCRBY n
    DECRBY n
    DECR
""")

same("incrbyfloat", """
    INCRBYFLOAT n 1.5
    INCRBYFLOAT n 1
    GET n
    INCRBYFLOAT n -2.5
    SET n 3
    INCRBYFLOAT n 1.1
    SET n 10.5
    INCRBYFLOAT n 0.1
    SET n 5.0e3
    INCRBYFLOAT n 2.0e2
    SET n 1
    INCRBYFLOAT n -1.1
    SET n 17179869184
    INCRBYFLOAT n 1.5
    INCRBYFLOAT n +1e2
    SET t text
    INCRBYFLOAT t 1
    SET t ' 1'
    INCRBYFLOAT t 1
    SET t ''
    INCRBYFLOAT t 1
    INCRBYFLOAT n x
    INCRBYFLOAT n nan
    INCRBYFLOAT n inf
    INCRBYFLOAT n -Infinity
    INCRBYFLOAT n ' 1'
    INCRBYFLOAT n 1e5000
    INCRBYFLOAT n ''
    SET k 1 EX 100
    INCRBYFLOAT k .5
    TTL k
    MULTI
    INCRBYFLOAT k 1.25
    INCRBYFLOAT t 1
    EXEC
    INCRBYFLOAT n
    INCRBYFLOAT n 1 2
""")
same("setbit getbit bitcount", """
    SETBIT k 7 1
    SETBIT k 7 1
    GET k
    SETBIT k 1 1
    SETBIT k 7 0
    GET k
    SETBIT k 23 0
    STRLEN k
    GETBIT k 1
    GETBIT k 2
    GETBIT k 4294967295
    GETBIT nothing 1
    SETBIT k x 1
    SETBIT k -1 1
    SETBIT k 4294967296 1
    SETBIT k 1 2
    SETBIT k 1 x
    SETBIT k 1 -1
    GETBIT k x
    GETBIT k -1
    GETBIT k 4294967296
    SET n 12
    SETBIT n 6 1
    GET n
    GETBIT n 3
    SET t foobar EX 100
    BITCOUNT t
    BITCOUNT t 0 0
    BITCOUNT t 1 1
    BITCOUNT t 1 1 BYTE
    BITCOUNT t 5 30 BIT
    BITCOUNT t -7 -2 bit
    BITCOUNT t 0 -1
    BITCOUNT t -2 -1
    BITCOUNT t -1 -2
    BITCOUNT t -100 100
    BITCOUNT t 4 2
    BITCOUNT t 100 200
    BITCOUNT t -200 -100
    BITCOUNT t -200 -100 BIT
    BITCOUNT nothing
    BITCOUNT nothing 0 1
    BITCOUNT t 0
    BITCOUNT t 0 1 NIBBLE
    BITCOUNT t 0 1 BIT x
    BITCOUNT t x 1
    BITCOUNT t 0 1.5
    SETBIT t 0 1
    TTL t
    MULTI
    SETBIT t 1 0
    GETBIT t 1
    BITCOUNT t
    EXEC
    SETBIT k 1
    GETBIT k
    BITCOUNT
""")
same("lcs", """
    LCS a b
    LCS a b LEN
    LCS a b IDX
    MSET a ohmytext b mynewtext
    LCS a b
    LCS a b LEN
    LCS a b IDX
    LCS a b IDX MINMATCHLEN 4
    LCS a b IDX MINMATCHLEN 4 WITHMATCHLEN
    LCS a b idx withmatchlen minmatchlen -3
    LCS a b WITHMATCHLEN
    LCS a b MINMATCHLEN 4
    LCS a a IDX
    LCS a nothing IDX
    LCS a b LEN IDX
    LCS a b LEN LEN
    LCS a b nonsense
    LCS a b MINMATCHLEN
    LCS a b MINMATCHLEN x
    MULTI
    LCS a b
    LCS a b IDX WITHMATCHLEN
    LCS a b LEN
    EXEC
    LCS a
    COMMAND GETKEYS LCS a b LEN
""")
for left, right in (("abcbdab", "bdcaba"), ("aaaaab", "baaaaa"), ("xaxbxcx", "yaybycy"), ("abc", "def"),
                    ("aabbaabb", "abababab"), ("a", "aaaa"), ("aaaa", "a"), ("bananas", "katanas")):
    same("lcs", f"""
        MSET a {left} b {right}
        LCS a b
        LCS a b IDX WITHMATCHLEN
        LCS b a IDX MINMATCHLEN 2
    """)
differs("lcs", LIMITS, f"""
    MSET a {'x' * 4096} b {'x' * 4096}
    LCS a b LEN
""", r"-ERR nothing was done: it would take more than 16777216 steps")
differs("setbit", LIMITS, "SETBIT k 134217728 1",
        r"-ERR bit offset is not an integer or out of range\r\n")
differs("bitcount", "words are judged before the key is read", "BITCOUNT nothing 0",
        r"-ERR syntax error")
differs("incrbyfloat", "sums of fractions are exact", """
    SET n 123456.7
    INCRBYFLOAT n 0.1
""", r"\$8\r\n123456\.8\r\n")

# --- keys ------------------------------------------------------------------------------------------

same("del unlink exists touch", """
    DEL a
    MSET a 1 b 2 c 3
    EXISTS a
    EXISTS a b nothing a
    TOUCH a b nothing a
    DEL a a nothing
    UNLINK b c
    EXISTS a b c
    DEL
    EXISTS
    UNLINK
    TOUCH
""")
same("type", """
    TYPE k
    SET k v
    TYPE k
    TYPE
""")
same("rename renamenx", """
    RENAME a b
    RENAMENX a b
    SET a 1
    RENAME a b
    MGET a b
    SET a 2
    RENAMENX a b
    MGET a b
    RENAMENX a c
    MGET a b c
    RENAME b b
    RENAMENX b b
    RENAME a
    RENAMENX a
""")
same("copy", """
    COPY a b
    SET a 1
    COPY a b
    COPY a b
    GET b
    SET a 2 EX 100
    COPY a b REPLACE
    GET b
    TTL b
    COPY a c
    TTL c
    SET d 1
    COPY d c replace
    TTL c
    COPY a a
    COPY a a REPLACE
    COPY a b DB 0 REPLACE
    COPY a b DB x
    COPY a b DB
    COPY a b nonsense
    COPY a b DB -1
    COPY nothing b REPLACE
    EXISTS b
    MULTI
    SET a 3 EX 100
    COPY a e
    TTL e
    EXEC
    COPY a
    COMMAND GETKEYS COPY a b REPLACE
""")
differs("copy", "there is only DB 0", """
    SET a 1
    COPY a b DB 1
""", r"-ERR DB index is out of range")
for name in ("flushall", "flushdb"):
    same(name, f"""
        {name}
        MSET a 1 b 2
        SET c 3 EX 100
        {name}
        DBSIZE
        SET a 1
        {name} SYNC
        SET a 1
        {name} async
        KEYS *
        TTL c
        WATCH w
        {name}
        MULTI
        PING
        EXEC
        SET w 1
        WATCH w
        {name}
        MULTI
        PING
        EXEC
        {name} LATER
        {name} SYNC ASYNC
        COMMAND GETKEYS {name}
    """)
    differs(name, "it is many commands of the log", f"""
        MULTI
        {name}
    """, r"-ERR '(flushall|flushdb)' cannot be in a transaction")
same("dbsize", """
    DBSIZE
    MSET a 1 b 2
    DBSIZE
    DBSIZE x
""")
same("scan", """
    SCAN 0
    SET k v
    SCAN 0
    SCAN 0 MATCH k* COUNT 100
    SCAN 0 MATCH x*
    SCAN 0 TYPE string
    SCAN 0 TYPE list
    SCAN 0 COUNT x
    SCAN 0 COUNT 0
    SCAN 0 MATCH
    SCAN 0 nonsense x
    SCAN x
    SCAN
""")
unordered("scan", """
    MSET a1 1 a2 2 b1 3 'b[x]' 4
    SCAN 0 COUNT 1000
    SCAN 0 MATCH a? COUNT 1000
    SCAN 0 MATCH [ab]1 COUNT 1000
    SCAN 0 MATCH [^a]* COUNT 1000
    SCAN 0 MATCH 'b\\[x\\]' COUNT 1000
    SCAN 0 MATCH [a-b]* COUNT 1000
""")
differs("scan", "a cursor is a number that this node gave",
        "SCAN 77", r"-ERR this node does not know the cursor")
unordered("keys", """
    KEYS *
    MSET a1 1 a2 2 b1 3 'b[x]' 4 'q?' 5 '' 6
    KEYS *
    KEYS a*
    KEYS *1
    KEYS [^b]*
    KEYS 'b\\[*'
    KEYS 'q\\?'
    KEYS ?1
    KEYS *?*
    KEYS ''
    KEYS [a-
    KEYS a[
    KEYS [b-a]1
    KEYS
""")
differs("keys", "the empty key fits two stars too", """
    SET '' 1
    KEYS *
    KEYS **
""", r"\*1\r\n\$0\r\n\r\n")
same("object object|encoding object|refcount object|freq object|idletime", """
    SET k 12345678
    OBJECT ENCODING k
    OBJECT REFCOUNT k
    SET k -9223372036854775808
    OBJECT ENCODING k
    SET k 012
    OBJECT ENCODING k
    SET k v
    object encoding k
    SET k 12345678901234567890123456789012345678901234
    OBJECT ENCODING k
    SET k 123456789012345678901234567890123456789012345
    OBJECT ENCODING k
    MULTI
    OBJECT ENCODING k
    OBJECT REFCOUNT k
    EXEC
    OBJECT ENCODING nothing
    OBJECT REFCOUNT nothing
    OBJECT FREQ nothing
    OBJECT IDLETIME nothing
    OBJECT ENCODING
    OBJECT ENCODING a b
    OBJECT
    COMMAND GETKEYS OBJECT ENCODING k
""")
differs("object|help", FRIENDLY, "OBJECT HELP", r"\*6\r\n\+OBJECT <subcommand>")
same("object", "OBJECT NONSENSE k")
differs("object|freq", FRIENDLY, """
    SET k v
    OBJECT FREQ k
""", r"-ERR An LFU maxmemory policy is not selected, access frequency not tracked")
differs("object|idletime", "nobody notes when a key is read", """
    SET k v
    OBJECT IDLETIME k
""", r"-ERR idle time is not tracked here")
differs("object|refcount", "no two keys share a value", """
    SET k 7
    OBJECT REFCOUNT k
""", r":1\r\n")
same("randomkey", """
    RANDOMKEY
    SET k v
    RANDOMKEY
    RANDOMKEY x
""")
same("ttl pttl persist", """
    TTL k
    PTTL k
    PERSIST k
    SET k v
    TTL k
    PTTL k
    PERSIST k
    TTL
""")

# --- the time of keys ------------------------------------------------------------------------------
# Whole seconds, so that what a case takes is rounded away.

same("set setex psetex ttl persist expiretime", """
    SET k v EX 100
    GET k
    TTL k
    PERSIST k
    TTL k
    PERSIST k
    SET k v PX 100000
    TTL k
    SET k w KEEPTTL
    TTL k
    SET k w
    TTL k
    EXPIRETIME k
    SET k v NX EX 100
    TTL k
    SET k v XX GET EX 100
    TTL k
    SET new v EX 100 NX GET
    TTL new
    SET k v EX 100 EX 200
    TTL k
    SET k v NX NX
    SET k v GET XX XX EX 50 GET
    TTL k
    SET k v EXAT 1
    GET k
    EXISTS k
    SET k v PXAT 1 GET
    EXISTS k
    SETEX k 100 v
    TTL k
    PSETEX k 200000 w
    TTL k
    GET k
    EXPIRETIME nothing
    SETEX k 100
    PSETEX k 100
""")
same("set setex psetex", """
    SET k v EX 0
    SET k v PX 0
    SET k v EX -1
    SET k v EXAT 0
    SET k v PXAT -5
    SET k v EX x
    SET k v PX 1.5
    SET k v EX 9223372036854775807
    SET k v PX 9223372036854775807
    SET k v EX 9223372036854776
    SETEX k 0 v
    SETEX k -1 v
    SETEX k x v
    PSETEX k 0 v
    PSETEX k 9223372036854775807 v
    EXISTS k
""")
for words in ("EX", "EX 10 PX 10", "KEEPTTL EX 10", "EX 10 KEEPTTL", "EXAT 10 EX 10", "NX EX 10 XX",
              "PERSIST"):
    differs("set", FRIENDLY, f"SET k v {words}", r"-ERR syntax error at '")
differs("set", TEN_YEARS, "SET k v EX 400000000",
        r"-ERR invalid expire time in 'set' command: a key that ends by itself lives for ten years")
same("expire pexpire expireat pexpireat ttl pttl pexpiretime", """
    EXPIRE k 100
    PEXPIRE k 100000
    EXPIREAT k 100
    PEXPIREAT k 100
    SET k v
    EXPIRE k 100
    TTL k
    PEXPIRE k 200000
    TTL k
    EXPIRE k 100 NX
    TTL k
    EXPIRE k 100 XX
    TTL k
    EXPIRE k 50 GT
    TTL k
    EXPIRE k 150 GT
    TTL k
    EXPIRE k 200 LT
    TTL k
    EXPIRE k 100 LT
    TTL k
    EXPIRE k 90 XX LT
    EXPIRE k 190 xx gt
    TTL k
    PERSIST k
    EXPIRE k 100 GT
    EXPIRE k 100 XX
    EXPIRE k 100 LT XX
    TTL k
    EXPIRE k 100 LT
    PERSIST k
    EXPIRE k 100 NX
    TTL k
    EXPIRE k 0 GT
    EXISTS k
    EXPIRE k 0 LT
    EXISTS k
    SET k v
    EXPIRE k 0
    EXISTS k
    SET k v
    PEXPIRE k -5
    EXISTS k
    SET k v
    EXPIREAT k 1
    EXISTS k
    SET k v
    PEXPIREAT k 1
    EXISTS k
    EXPIRETIME k
    PEXPIRETIME k
    PTTL k
    SET k v
    PEXPIRETIME k
    PTTL k
    EXPIRE k
    EXPIRE
    TTL
    PTTL a b
    EXPIRETIME
    PEXPIRETIME
    PEXPIRE k
    EXPIREAT k
    PEXPIREAT k
""")
same("expiretime pexpiretime", f"""
    SET k v EXAT {LATER}
    EXPIRETIME k
    PEXPIRETIME k
    SET k v PXAT {LATER}123
    EXPIRETIME k
    PEXPIRETIME k
    PEXPIREAT k {LATER}789
    EXPIRETIME k
    PEXPIRETIME k
    COPY k c
    RENAME k r
    PEXPIRETIME c
    PEXPIRETIME r
    GETEX r EXAT {LATER}
    PEXPIRETIME r
    MULTI
    PEXPIRETIME r
    EXEC
""")
same("expire pexpire expireat pexpireat", """
    SET k v
    EXPIRE k x
    EXPIRE k 1.5
    EXPIRE k 100 nonsense
    EXPIRE k x nonsense
    EXPIRE k 100 NX XX
    EXPIRE k 100 NX GT
    EXPIRE k 100 LT NX
    EXPIRE k 100 GT LT
    EXPIRE k 100 GT LT XX
    EXPIRE k 9223372036854775807
    EXPIRE k -9223372036854775808
    PEXPIRE k 9223372036854775807
    EXPIREAT k 9223372036854775807
    TTL k
    PEXPIREAT k -9223372036854775808
    EXISTS k
""")
differs("expire", TEN_YEARS, "EXPIRE k 400000000",
        r"-ERR invalid expire time in 'expire' command: a key that ends by itself lives for ten years")
same("getex", """
    SET k v
    GETEX k EX 100
    TTL k
    GETEX k
    TTL k
    GETEX k PX 200000
    TTL k
    GETEX k PERSIST
    TTL k
    GETEX k PERSIST PERSIST
    GETEX k EXAT 1
    EXISTS k
    GETEX k EX 100
    EXISTS k
    SET k v
    GETEX k EX 0
    GETEX k EX x
    GETEX k EX
    GETEX k EX 1 PX 1
    GETEX k EX 1 PERSIST
    GETEX k PERSIST EX 1
    GETEX k KEEPTTL
    GETEX k NX
    TTL k
""")
same("rename set append incr setrange getset mset getdel del", """
    SET n 1 EX 100
    INCR n
    APPEND n 0
    SETRANGE n 0 3
    TTL n
    RENAME n m
    TTL m
    EXISTS n
    SET other x EX 200
    RENAME m other
    TTL other
    SET plain y
    RENAME plain other
    TTL other
    SET k v EX 100
    GETSET k w
    TTL k
    SET k v EX 100
    MSET k w
    TTL k
    SET k v EX 100
    GETDEL k
    SET k v
    TTL k
    SET k v EX 100
    DEL k
    SET k v
    TTL k
    SETNX k w
    TTL k
""")
same("multi exec watch", """
    MULTI
    SET k v EX 100
    TTL k
    EXPIRE k 200
    TTL k
    PERSIST k
    TTL k
    SETEX k 100 v
    GETEX k PERSIST
    EXPIRE k 0
    EXISTS k
    TTL k
    EXPIRETIME k
    EXEC
    SET k v
    WATCH k
    EXPIRE k 100
    MULTI
    SET k w
    EXEC
    GET k
    MULTI
    SET k w
    EXPIRE k 300 GT
    EXPIRE k 50 LT
    TTL k
    EXEC
    TTL k
""")

# --- scripts ---------------------------------------------------------------------------------------
# Redis runs them, Leasehold knows them: the answers have to be the same. A word with blanks stands in
# single quotes, so the scripts have double ones.

IF_EQUAL = 'if redis.call("get",KEYS[1]) == ARGV[1] then return '
DELETE = f"'{IF_EQUAL}redis.call(\"del\",KEYS[1]) else return 0 end'"
DELETE_SHORT = f"'{IF_EQUAL}redis.call(\"del\",KEYS[1]) end return 0'"
TOUCH = f"'{IF_EQUAL}redis.call(\"PEXPIRE\", KEYS[1], ARGV[2]) else return 0 end'"
TOUCH_SECONDS = f"'{IF_EQUAL}redis.call(\"expire\", KEYS[1], ARGV[2]) else return 0 end'"
TOUCH_OR_SET = (f"'{IF_EQUAL}redis.call(\"pexpire\", KEYS[1], ARGV[2]) elseif redis.call(\"SET\", KEYS[1], "
                "ARGV[1], \"PX\", ARGV[2], \"NX\") then return 1 else return 0 end'")
DELETE_OR_MINUS_ONE = ("'local val = redis.call(\"GET\", KEYS[1]) if val == ARGV[1] then return "
                       "redis.call(\"DEL\", KEYS[1]) elseif val == false then return -1 else return 0 end'")
HELD = f"'{IF_EQUAL}redis.call(\"pttl\", KEYS[1]) else return -3 end'"
MINE = 'local token = redis.call("get", KEYS[1]) if not token or token ~= ARGV[1] then return 0 end '
RELEASE = f"'{MINE}redis.call(\"del\", KEYS[1]) return 1'"
REACQUIRE = f"'{MINE}redis.call(\"pexpire\", KEYS[1], ARGV[2]) return 1'"
LEFT = ('local expiration = redis.call("pttl", KEYS[1]) if not expiration then expiration = 0 end '
        'if expiration < 0 then return 0 end ')
EXTEND = (f"'{MINE}{LEFT}local newttl = ARGV[2] if ARGV[3] == \"0\" then newttl = ARGV[2] + expiration end "
          "redis.call(\"pexpire\", KEYS[1], newttl) return 1'")
ADD = f"'{MINE}{LEFT}redis.call(\"pexpire\", KEYS[1], expiration + ARGV[2]) return 1'"
SET_ONE = "'return redis.call(\"set\", KEYS[1], ARGV[1], \"NX\", \"PX\", ARGV[2])'"
EACH = "for i, key in ipairs(KEYS) do "
SET_ALL = EACH + 'redis.call("set", key, ARGV[1], "PX", ARGV[2]) end return #KEYS'
ACQUIRE_ALL = f"'{EACH}if redis.call(\"exists\", key) == 1 then return 0 end end {SET_ALL}'"
EXTEND_ALL = f"'{EACH}if redis.call(\"get\", key) ~= ARGV[1] then return 0 end end {SET_ALL}'"
RELEASE_ALL = (f"'local count = 0 {EACH}if redis.call(\"get\", key) == ARGV[1] then redis.pcall(\"del\", key) "
               "count = count + 1 end end return count'")
NO_LUA = "there is no Lua"

for script in (DELETE, DELETE_SHORT, RELEASE, DELETE_OR_MINUS_ONE):
    same("eval", f"""
        EVAL {script} 1 k me
        SET k me EX 100
        EVAL {script} 1 k you
        EVAL {script} 1 k me
        EVAL {script} 1 k me
        EXISTS k
        EVAL {script} x k me
        EVAL {script} -1 k me
        EVAL {script} 3 k me
        EVAL {script}
    """)
for script, unit in ((TOUCH, 1000), (TOUCH_SECONDS, 1), (REACQUIRE, 1000), (TOUCH_OR_SET, 1000)):
    same("eval", f"""
        EVAL {script} 1 k me {100 * unit}
        TTL k
        DEL k
        SET k me
        EVAL {script} 1 k you {100 * unit}
        TTL k
        EVAL {script} 1 k me {200 * unit}
        TTL k
        EVAL {script} 1 k me {50 * unit}
        TTL k
    """ + ("" if script == TOUCH_OR_SET else f"""
        EVAL {script} 1 k me 0
        EXISTS k
    """))
differs("eval", "a time is judged before the value", f"""
    SET k me
    EVAL {TOUCH_OR_SET} 1 k me 0
""", r"-ERR invalid expire time in 'set' command")
same("eval", f"""
    EVAL {EXTEND} 1 k me 100000 0
    SET k me
    EVAL {EXTEND} 1 k me 100000 0
    EVAL {EXTEND} 1 k me 100000 1
    EVAL {ADD} 1 k me 100000
    SET k me EX 100
    EVAL {EXTEND} 1 k you 100000 0
    EVAL {EXTEND} 1 k me 100000 0
    TTL k
    EVAL {EXTEND} 1 k me 50000 1
    TTL k
    EVAL {EXTEND} 1 k me 50000 x
    TTL k
    EVAL {ADD} 1 k me 10000
    TTL k
    EVAL {HELD} 1 k you
    PERSIST k
    EVAL {HELD} 1 k me
    DEL k
    EVAL {HELD} 1 k me
""")
same("eval", f"""
    EVAL {SET_ONE} 1 k me 100000
    EVAL {SET_ONE} 1 k you 200000
    GET k
    TTL k
    EVAL {ACQUIRE_ALL} 2 a k me 100000
    EXISTS a
    EVAL {ACQUIRE_ALL} 2 a b me 100000
    TTL b
    EVAL {EXTEND_ALL} 3 a b k me 200000
    SET k other
    EVAL {EXTEND_ALL} 3 a b k me 300000
    TTL a
    EVAL {EXTEND_ALL} 2 a nothing me 300000
    EVAL {RELEASE_ALL} 4 a b k nothing me
    EXISTS a b k
    EVAL {ACQUIRE_ALL} 3 a a b me 100000
    EVAL {RELEASE_ALL} 2 a a me
""")
same("evalsha script|load script|exists script|flush", f"""
    SCRIPT FLUSH
    EVALSHA 0000000000000000000000000000000000000000 0
    EVALSHA x 0
    SCRIPT EXISTS 0000000000000000000000000000000000000000 x
    SCRIPT LOAD {DELETE}
    SCRIPT EXISTS 95f8d1e6a8ba9ad5ff1a7d5f0cbe7ad5dd4ac9b4 x
    SCRIPT FLUSH ASYNC
    SCRIPT FLUSH sync
    SCRIPT FLUSH nonsense
    SCRIPT LOAD
    SCRIPT EXISTS
    EVALSHA x
""")
differs("eval", NO_LUA, "EVAL 'return 1' 0", r"-ERR there is no Lua here")
differs("script|load", NO_LUA, "SCRIPT LOAD 'return 1'", r"-ERR there is no Lua here")
differs("eval", "a script stands for itself", f"""
    MULTI
    EVAL {DELETE} 1 k me
""", r"-ERR 'eval' cannot be in a transaction")
differs("script script|help", FRIENDLY, "SCRIPT HELP", r"\*\d+\r\n\+SCRIPT <subcommand> ")

# --- transactions ----------------------------------------------------------------------------------

same("multi exec discard", """
    MULTI
    SET a 1
    INCR a
    GET a
    MGET a b
    MSETNX b 1 a 2
    TYPE a
    TTL a
    EXISTS a b a
    STRLEN a
    APPEND a x
    GETRANGE a 0 0
    SETRANGE a 5 z
    RENAME a c
    GETDEL c
    PERSIST c
    DBSIZE
    SET c v NX
    SET c v NX
    SET c w GET
    EXEC
    MULTI
    SET a 1
    DISCARD
    GET a
    MULTI
    EXEC
    EXEC
    DISCARD
    MULTI
    MULTI
    EXEC
    MULTI x
""")
same("multi exec ping echo", """
    MULTI
    PING
    SET a 1
    ECHO x
    INCR a
    PING hello
    EXEC
    MULTI
    PING
    EXEC
    MULTI
    ECHO
    EXEC
""")
differs("exec", "a wrong EXEC is refused like any other wrong command", "EXEC x",
        r"-ERR wrong number of arguments for 'exec'")
same("exec", """
    MULTI
    SET t text
    INCR t
    RENAME nothing x
    SET after 1
    EXEC
    MGET t after
    MULTI
    GET
    SET k v
    EXEC
    GET k
""")
same("watch unwatch", """
    SET k 1
    WATCH k
    MULTI
    SET k 2
    EXEC
    WATCH k nothing
    SET k 3
    MULTI
    SET k 4
    EXEC
    GET k
    MULTI
    SET k 5
    EXEC
    WATCH k
    SET k 6
    UNWATCH
    MULTI
    SET k 7
    EXEC
    WATCH k
    SET k 8
    MULTI
    DISCARD
    MULTI
    GET k
    EXEC
    WATCH new
    SETNX new 1
    MULTI
    EXEC
    WATCH k
    DEL k
    MULTI
    SET k 9
    EXEC
    EXISTS k
    MULTI
    WATCH k
    EXEC
    WATCH
    UNWATCH
""")
differs("multi", STRICTER, """
    MULTI
    INCRBY a x
""", r"-ERR value is not an integer or out of range")
differs("exec", STRICTER, """
    MULTI
    KEYS *
""", r"-ERR 'keys' cannot be in a transaction")
differs("multi", "only commands on keys can be queued, and PING, ECHO and TIME", """
    MULTI
    CLIENT GETNAME
""", r"-ERR 'client\|getname' cannot be in a transaction")
differs("watch", "a key that was made and is gone again has not changed", """
    WATCH k
    SET k v
    DEL k
    MULTI
    SET k w
    EXEC
""", r"\*1\r\n\+OK")
differs("unwatch", "it could only mislead", """
    MULTI
    UNWATCH
""", r"-ERR 'unwatch' cannot be in a transaction|-ERR UNWATCH inside MULTI")

# --- the connection --------------------------------------------------------------------------------

same("ping echo", """
    PING
    PING text
    PING a b
    ECHO text
    ECHO
    ECHO a b
""")
same("select", """
    SELECT 0
    SELECT x
    SELECT
""")
differs("select", "there is one database", "SELECT 1", r"-ERR DB index is out of range")
same("reset", """
    CLIENT SETNAME me
    MULTI
    SET k v
    RESET
    CLIENT GETNAME
    EXEC
    GET k
""")
same("client client|getname client|setname client|no-evict client|reply client|kill", """
    CLIENT GETNAME
    CLIENT SETNAME me
    CLIENT GETNAME
    CLIENT SETNAME 'two words'
    CLIENT SETNAME ''
    CLIENT GETNAME
    CLIENT SETNAME
    CLIENT NO-EVICT on
    CLIENT NO-EVICT off
    CLIENT NO-EVICT nonsense
    CLIENT REPLY ON
    CLIENT REPLY nonsense
    CLIENT KILL 127.0.0.1:1
    CLIENT KILL ID 123456789
    CLIENT KILL ID 0
    CLIENT KILL ID x
    CLIENT KILL SKIPME maybe
    CLIENT
    CLIENT NONSENSE
""")
differs("client|id", "numbers of connections", "CLIENT ID", r":[1-9]\d*\r\n")
differs("client|info", OTHER_SERVER, "CLIENT INFO", r"\$\d+\r\nid=\d+ addr=127.0.0.1:\d+ ")
differs("client|list", OTHER_SERVER, "CLIENT LIST", r"\$\d+\r\nid=\d+ addr=127.0.0.1:\d+ ")
differs("client|setinfo", "newer than this Redis", "CLIENT SETINFO lib-name x", r"\+OK")
differs("client|no-touch", "newer than this Redis", "CLIENT NO-TOUCH on", r"\+OK")
differs("hello", OTHER_SERVER, "HELLO", r"[*%]\d+\r\n\$6\r\nserver\r\n\$9\r\nleasehold")
differs("hello", FRIENDLY, "HELLO 4", r"-NOPROTO unsupported protocol version")
differs("hello", FRIENDLY, "HELLO nonsense", r"-NOPROTO unsupported protocol version")
differs("readonly", "this Redis is no cluster", "READONLY", r"\+OK")
differs("readwrite", "this Redis is no cluster", "READWRITE", r"\+OK")
for container in ("client", "cluster", "command", "config", "slowlog"):
    differs(f"{container}|help", FRIENDLY, f"{container} HELP",
            rf"\*\d+\r\n\+{container.upper()} <subcommand> ")

# --- the node --------------------------------------------------------------------------------------

same("config config|get", """
    CONFIG GET nosuchsetting
    CONFIG GET save
    CONFIG GET databases*x
    CONFIG GET
    CONFIG
    CONFIG NONSENSE
    CONFIG SET
""")
differs("config|get", OTHER_SERVER, "CONFIG GET databases", r"[*%]\d\r\n\$9\r\ndatabases\r\n\$1\r\n1")
differs("config|set", "settings change with a restart", "CONFIG SET databases 2",
        r"-ERR CONFIG SET failed \(possibly related to argument 'databases'\) - settings are flags")
same("config|set", "CONFIG SET notify-keyspace-events KEA")
same("config|set config|get", """
    CONFIG SET loglevel VERBOSE
    CONFIG GET loglevel
    CONFIG SET loglevel loud
    CONFIG SET loglevel notice
    CONFIG GET loglevel
""")
same("config|set config|get", """
    CONFIG SET timeout 300 slowlog-log-slower-than 20000
    CONFIG GET timeout
    CONFIG GET slowlog-log-slower-than
    CONFIG SET TIMEOUT 0
    CONFIG GET timeout
    CONFIG SET slowlog-log-slower-than -1
    CONFIG GET slowlog-log-slower-than
    CONFIG SET slowlog-log-slower-than 10000
    CONFIG SET save ''
    CONFIG SET timeout 0 timeout 1
    CONFIG SET timeout
    CONFIG SET timeout 1 save
    CONFIG SET nosuchsetting 1
    CONFIG SET maxclients 9999
    CONFIG GET maxclients
    CONFIG SET maxclients 10000
    CONFIG GET maxmemory
    CONFIG GET slowlog-max-len
""")
for words in ("timeout x", "timeout -1", "maxclients 0", "slowlog-log-slower-than x"):
    differs("config|set", FRIENDLY, f"CONFIG SET {words}",
            rf"-ERR CONFIG SET failed \(possibly related to argument '{words.split()[0]}'\) - it is a number")
ours("config|set", """
    CONFIG SET idle-timeout 1500ms slowlog-threshold 20ms
    CONFIG GET timeout
    CONFIG GET slowlog-log-slower-than
    CONFIG SET idle-timeout 0s slowlog-threshold 10ms
    CONFIG GET *timeout*
""", r"[*%]\d+\r\n\$7\r\ntimeout\r\n\$1\r\n0\r\n")
differs("config|set", "they are always on, for those who subscribe",
        "CONFIG SET notify-keyspace-events ''", r"-ERR CONFIG SET failed .* - notifications are always on")
differs("config|get", "they are always on, for those who subscribe",
        "CONFIG GET notify-keyspace-events", r"[*%]\d\r\n\$22\r\nnotify-keyspace-events\r\n\$5\r\ng\$xKE")
differs("info", OTHER_SERVER, "INFO", r"\$\d+\r\n# Server\r\n")
differs("info", OTHER_SERVER, "INFO server clients", r"\$\d+\r\n# Server\r\n")
same("command|info command|docs command|list command|getkeys", """
    COMMAND INFO nosuchcommand
    COMMAND DOCS nosuchcommand
    COMMAND LIST FILTERBY PATTERN nosuch*
    COMMAND LIST FILTERBY PATTERN getse*
    COMMAND LIST nonsense
    COMMAND GETKEYS GET k
    COMMAND GETKEYS MSET a 1 b 2
    COMMAND GETKEYS DEL a b c
    COMMAND GETKEYS RENAME a b
    COMMAND GETKEYS EVAL "return 1" 2 a b c
    COMMAND GETKEYS EVAL "return 1" 0
    COMMAND GETKEYS PING
    COMMAND GETKEYS nosuchcommand
    COMMAND GETKEYS GET
    COMMAND GETKEYS
""")
differs("command", OTHER_SERVER, "COMMAND", r"\*\d+\r\n\*10\r\n\$3\r\nacl")
differs("command|count", OTHER_SERVER, "COMMAND COUNT", r":\d+\r\n")
differs("command|info", OTHER_SERVER, "COMMAND INFO get", r"\*1\r\n\*10\r\n\$3\r\nget\r\n:2\r\n")
differs("command|docs", OTHER_SERVER, "COMMAND DOCS get",
        r"[*%]\d\r\n\$3\r\nget\r\n[*%]\d\r\n\$7\r\nsummary")
same("slowlog slowlog|get slowlog|len slowlog|reset", """
    SLOWLOG RESET
    SLOWLOG LEN
    SLOWLOG GET
    SLOWLOG GET 5
    SLOWLOG GET -1
    SLOWLOG GET -2
    SLOWLOG LEN x
    SLOWLOG
    SLOWLOG NONSENSE
""")
differs("time", "it is later now", "TIME", r"\*2\r\n\$10\r\n\d{10}\r\n\$\d\r\n\d+\r\n")
differs("wait", "a majority of three nodes has every write", "WAIT 0 0", r":1\r\n")
same("wait", """
    WAIT x 0
    WAIT 0 x
    WAIT 0 -1
    WAIT 0
""")
differs("role", OTHER_SERVER, "ROLE", r"\*3\r\n\$6\r\nmaster|\*5\r\n\$5\r\nslave")

# --- clusters --------------------------------------------------------------------------------------

for name, pattern in (("slots", r"\*1\r\n\*5\r\n:0\r\n:16383\r\n\*4\r\n\$9\r\n127.0.0.1"),
                      ("shards", r"\*1\r\n[*%]\d\r\n\$5\r\nslots\r\n\*2\r\n:0\r\n:16383"),
                      ("nodes", r"\$\d+\r\n[0-9a-f]{40} 127.0.0.1:\d+@0 "),
                      ("info", r"\$\d+\r\ncluster_enabled:1\r\ncluster_state:ok"),
                      ("myid", r"\$40\r\n[0-9a-f]{40}"),
                      ("keyslot foo{hash_tag}", r":2515\r\n"),
                      ("keyslot 123456789", r":12739\r\n"),
                      ("countkeysinslot 3", r":0\r\n"),
                      ("countkeysinslot 16384", r"-ERR Invalid slot")):
    differs(f"cluster cluster|{name.split()[0]}", "this Redis is no cluster", f"CLUSTER {name}",
            pattern)

# --- what Redis does not have ----------------------------------------------------------------------

ours("leasehold leasehold|help", "LEASEHOLD HELP", r"\*\d+\r\n\+LEASEHOLD <subcommand> ")
ours("leasehold|status", "LEASEHOLD STATUS", r'\$\d+\r\n\{"id":')
ours("leasehold|group", "LEASEHOLD GROUP",
     r"[*%]\d+\r\n\$5\r\ngroup\r\n:1\r\n\$6\r\ngroups\r\n:1\r\n\$5\r\nslots\r\n:16384\r\n"
     r"\$10\r\nfirst-slot\r\n:0\r\n\$9\r\nlast-slot\r\n:16383")
ours("leasehold|group", "LEASEHOLD GROUP KEY k", r"\+OK")
ours("leasehold|group", "LEASEHOLD GROUP 2", r"-ERR ")
ours("leasehold|backup", "LEASEHOLD BACKUP ../x", r"-ERR a backup's name has 1 to 128 letters")
ours("leasehold|backup", "LEASEHOLD BACKUP x FRESH", r"-ERR expected LEASEHOLD BACKUP name \[STALE\] \[SETTLED\]")
ours("leasehold|readbackup", "LEASEHOLD READBACKUP ../x 0", r"-ERR a backup's name has 1 to 128 letters")
ours("leasehold|readbackup", "LEASEHOLD READBACKUP nothing 0", r"-ERR there is no \S+/backups/nothing")
ours("leasehold|readbackup", "LEASEHOLD READBACKUP nothing -1", r"-ERR the offset is a number of bytes")
ours("leasehold|host", "LEASEHOLD HOST ADD 4=127.0.0.1:1", r"-ERR this node has one group")
ours("leasehold|host", "LEASEHOLD HOST DROP 4", r"-ERR expected LEASEHOLD HOST ADD id=host:port")
ours("leasehold|pool", "LEASEHOLD POOL", r'\$\d+\r\n\{"node":\d,"peer_address":')
ours("leasehold|pool", "LEASEHOLD POOL PLACE 2 1,3", r"-ERR this node has one group")
ours("leasehold|pool", "LEASEHOLD POOL LIST", r"-ERR expected LEASEHOLD POOL \[PLACE group id,\.\.\.\]")
ours("leasehold|member", "LEASEHOLD MEMBER LIST", r'\$\d+\r\n\{"node":\d,"leader":\d,"term":')
ours("leasehold|member", "LEASEHOLD MEMBER ADD 4", r"-ERR expected LEASEHOLD MEMBER LIST, ADD \[WITNESS\] id=")
ours("leasehold|member", "LEASEHOLD MEMBER EXPECT 1 DEMOTE 2",
     r"-(ERR the members or the settings are not those that were expected: in effect is membership [0-9a-f]{16},"
     r"|NOLEADER this node does not lead)")
ours("leasehold|member", "LEASEHOLD MEMBER REMOVE 9",
     r"-(ERR node 9 is not a member|NOLEADER this node does not lead)")
ours("leasehold|settings", "LEASEHOLD SETTINGS",
     r'\$\d+\r\n\{"node":\d,"leader":\d,"agreed":true,"committed":true,"lease":"1s",')
ours("leasehold|settings", "LEASEHOLD SETTINGS SET lease",
     r"-ERR expected LEASEHOLD SETTINGS, or LEASEHOLD SETTINGS SET")
ours("leasehold|settings", "LEASEHOLD SETTINGS SET lease 10ms",
     r"-(ERR unsafe lease|NOLEADER this node does not lead)")
ours("leasehold|settings", "LEASEHOLD SETTINGS SET colour red", r"-ERR 'colour' is no setting of a group")
ours("leasehold|slots", "LEASEHOLD SLOTS", r"\*0\r\n")
ours("leasehold|slots", "LEASEHOLD SLOTS LIST",
     r"\*1\r\n[*%]\d\r\n\$5\r\nfirst\r\n:0\r\n\$4\r\nlast\r\n:16383\r\n\$5\r\ngroup\r\n:1\r\n")
ours("leasehold|slots", "LEASEHOLD SLOTS MOVE 0-99 7001 TO 1", r"-ERR this server has one group")
ours("leasehold|slots", "LEASEHOLD SLOTS MOVE 16384 TO 1", r"-ERR '16384' is no slot")
ours("leasehold|slots", "LEASEHOLD SLOTS CANCEL 9-3", r"-ERR '9-3' is no range of slots")
ours("leasehold|slots", "LEASEHOLD SLOTS MOVE 1 2", r"-ERR expected LEASEHOLD SLOTS, LIST, MOVE slot")
ours("leasehold|snapshot", "LEASEHOLD SNAPSHOT", r'\$\d+\r\n\{"index":\d+,"first_before":1,"first":1,')
ours("leasehold|reload", "LEASEHOLD RELOAD",
     r"\$\d+\r\nsettings, certificates and keys were read again; protection of peers: plain")
# Never one that would succeed: the other cases know who leads.
ours("leasehold|trace", "LEASEHOLD TRACE START 0s", r"-ERR a recording lasts for more than 0, and for 10 minutes")
ours("leasehold|trace", "LEASEHOLD TRACE START soon", r"-ERR ")
ours("leasehold|trace", "LEASEHOLD TRACE LIST", r"-ERR expected LEASEHOLD TRACE START span")
ours("leasehold|trace", "LEASEHOLD TRACE NEXT 1", r"-ERR there is no such recording, or no more")
ours("leasehold|trace", "LEASEHOLD TRACE STOP x", r"-ERR expected LEASEHOLD TRACE START span")
ours("leasehold|traceparent", "LEASEHOLD TRACEPARENT 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", r"\+OK")
ours("leasehold|traceparent", "LEASEHOLD TRACEPARENT 00-0af7", r"-ERR expected LEASEHOLD TRACEPARENT")
ours("leasehold|transfer", "LEASEHOLD TRANSFER nobody", r"-ERR 'nobody' is not the number of a node")
ours("leasehold|transfer", "LEASEHOLD TRANSFER 9",
     r"-(ERR node 9 is not a voter of this group|NOLEADER this node does not lead)")
ours("leasehold|readmode", """
    LEASEHOLD READMODE quorum
    LEASEHOLD READMODE
""", r"\$6\r\nquorum")
ours("leasehold|readmode", """
    LEASEHOLD READMODE stale 500ms
    SET k v
    GET k
    LEASEHOLD READMODE
""", r"\$11\r\nstale 500ms")
ours("leasehold|session", "LEASEHOLD SESSION OPEN", r":\d+\r\n")
ours("leasehold|session", "LEASEHOLD SESSION LIST", r'\$\d+\r\n\{"open":\d+,"open_max":10000,"sessions":')
ours("leasehold|session", "LEASEHOLD SESSION TOUCH 4000000000",
     r"-NOSESSION session 4000000000 is unknown, closed or expired")
ours("leasehold|session", "LEASEHOLD SESSION CLOSE x", r"-ERR 'x' is not the id of a session")
ours("leasehold|once", "LEASEHOLD ONCE 4000000000 1 SET k v",
     r"-NOSESSION session 4000000000 is unknown, closed or expired; nothing was done now")
ours("leasehold|once", "LEASEHOLD ONCE 1 1 GET k", r"-ERR 'GET' is not a command that writes keys")
ours("leasehold|once", """
    MULTI
    SET k v
    LEASEHOLD ONCE 4000000000 1 EXEC
""", r"-NOSESSION ")
ours("leasehold|read", """
    SET k v
    LEASEHOLD READ log GET k
""", r"\$1\r\nv")
ours("leasehold|read", """
    SET k v
    LEASEHOLD READ stale 1s MGET k
""", r"\*1\r\n\$1\r\nv")
ours("leasehold|read", "LEASEHOLD READ quorum SET k v", r"-ERR 'SET' is not a command that reads keys")
ours("leasehold|clock", "LEASEHOLD CLOCK",
     r"[*%]\d+\r\n\$9\r\nholder_ns\r\n:\d+\r\n\$10\r\npromise_ns\r\n:\d+\r\n\$7\r\nmachine\r\n\$\d+\r\n[-0-9a-f]*\r\n")
ours("leasehold|explain", """
    LEASEHOLD READ quorum GET k
    LEASEHOLD EXPLAIN
""", r"[*%]\d+\r\n\$6\r\nserved\r\n\$(6\r\nquorum|6\r\nleader)\r\n\$4\r\nmode\r\n\$6\r\nquorum")

# --- users -----------------------------------------------------------------------------------------

NEWER_WORDS = "the words of errors are those of Redis 7.2"
ANN = "ACL SETUSER ann on >secret ~a* %R~b +@read +@connection +acl|whoami +set\nAUTH ann secret\n"

same("auth acl|whoami acl|users", """
    AUTH x
    AUTH default x
    AUTH nobody x
    AUTH a b c
    AUTH
    ACL WHOAMI
    ACL USERS
    ACL LIST
    ACL GETUSER default
    ACL GETUSER nobody
""")
same("acl|setuser acl|deluser", """
    ACL SETUSER case on nopass ~a* %R~b &c* +@read +set -get
    ACL SETUSER case +nothing
    ACL SETUSER case +@nothing
    ACL SETUSER case what
    ACL SETUSER case %Q~a
    ACL SETUSER case '~a b'
    ACL SETUSER case allkeys
    ACL SETUSER case ~a
    ACL SETUSER case allchannels
    ACL SETUSER case &a
    ACL SETUSER 'a b'
    ACL DELUSER case
    ACL DELUSER case
    ACL DELUSER
    ACL DELUSER default
""")
same("acl|list acl|getuser acl|setuser", """
    ACL SETUSER case on nopass ~a* %R~b &c* +@read +set
    ACL LIST
    ACL GETUSER case
    ACL SETUSER case off resetkeys resetchannels -@all
    ACL LIST
    ACL GETUSER case
    ACL DELUSER case
""")
same("auth acl|setuser", ANN + """
    ACL WHOAMI
    AUTH ann wrong
    SET a v
    GET a
    GET b
    RESET
    ACL WHOAMI
    ACL DELUSER ann
""")
for words in ("GET c", "SET b v", "MGET a c", "SET b v GET"):
    differs("", NEWER_WORDS, ANN + words, r"-NOPERM No permissions to access a key\r\n")
differs("", NEWER_WORDS, ANN + "DEL a", r"-NOPERM User ann has no permissions to run the 'del' command")
differs("acl|deluser", NEWER_WORDS, ANN + "ACL DELUSER ann",
        r"-NOPERM User ann has no permissions to run the 'acl\|deluser' command")
same("acl|dryrun", """
    ACL SETUSER case ~a +set
    ACL DRYRUN case SET a v
    ACL DELUSER case
""")
differs("acl|setuser", "an error shows no part of a password", "ACL SETUSER case <none",
        r"-ERR Error in ACL SETUSER modifier '<\(password\)': The password you are trying to remove")
differs("acl|setuser", "an error shows no part of a password", "ACL SETUSER case #123",
        r"-ERR Error in ACL SETUSER modifier '#\(password\)': The password hash must be exactly 64")
differs("acl|dryrun", NEWER_WORDS, """
    ACL SETUSER case ~a +set
    ACL DRYRUN case SET b v
""", r"\$30\r\nNo permissions to access a key")
differs("acl|cat", "there are other commands", "ACL CAT", r"\*16\r\n")
same("acl|cat", "ACL CAT nothing")
ours("acl|genpass", "ACL GENPASS 8", r"\$2\r\n[0-9a-f]{2}\r\n")
same("acl|log", """
    ACL LOG RESET
    ACL LOG
""")
differs("acl acl|help", FRIENDLY, "ACL HELP", r"\*\d+\r\n")

# --- refusals --------------------------------------------------------------------------------------

for words in ("LPUSH k v", "HSET k f v", "SADD k m", "ZADD k 1 m", "XADD k * f v"):
    differs("", ONE_STORE, words, rf"-ERR '{words.split()[0]}' is not supported: every value")
for words in ("PUBLISH c m", "SAVE", "DEBUG SLEEP 0",
              "MEMORY USAGE k", "REPLICAOF no one",
              "BITPOS k 1", "DUMP k"):
    differs("", "not supported, with the reason", words,
            rf"-ERR '{words.split()[0]}' is not supported: ")
differs("", FRIENDLY, "NOSUCHCOMMAND a b", r"-ERR unknown command 'NOSUCHCOMMAND'")

# --- messages without a request ----------------------------------------------------------------------------

same("subscribe unsubscribe psubscribe punsubscribe", """
    SUBSCRIBE __keyspace@0__:k
    SUBSCRIBE __keyspace@0__:k
    PSUBSCRIBE __key*__:*
    PING
    PING text
    UNSUBSCRIBE __keyspace@0__:other
    UNSUBSCRIBE
    UNSUBSCRIBE
    PUNSUBSCRIBE __key*__:*
    PUNSUBSCRIBE
    GET k
""")
same("subscribe", """
    SUBSCRIBE __keyevent@0__:set
    RESET
    GET k
""")
same("subscribe", "SUBSCRIBE")
differs("subscribe", "only keys tell of themselves here", "SUBSCRIBE news",
        r"-ERR there is no publish/subscribe here")
differs("psubscribe", "only keys tell of themselves here", "PSUBSCRIBE news.*",
        r"-ERR there is no publish/subscribe here")
ours("leasehold|expect", """
    DEL k
    LEASEHOLD EXPECT k 0
    MULTI
    SET k 1
    EXEC
""", r"\*1\r\n\+OK")
ours("leasehold|expect", """
    SET k 1
    LEASEHOLD EXPECT k 1
    MULTI
    SET k 2
    EXEC
""", r"(\*-1|_)\r\n")
ours("leasehold|expect", "LEASEHOLD EXPECT k x", r"-ERR 'x' is not a revision")
ours("leasehold|watch leasehold|unwatch", """
    LEASEHOLD WATCH KEY k PREFIX x VALUES
    PING
    LEASEHOLD UNWATCH
""", r"\+OK")
ours("leasehold|watch", "LEASEHOLD WATCH KEY k FROM 1000000000", r"-ERR revision 999999999 does not exist yet")
ours("leasehold|range", """
    MSET k/1 a k/2 b l c
    LEASEHOLD RANGE k/ COUNT 1 VALUES
""", r"\*3\r\n:\d+\r\n\$3\r\nk/1\r\n\*1\r\n\*6\r\n\$3\r\nk/1\r\n:\d+\r\n:\d+\r\n:1\r\n:0\r\n\$1\r\na")

# QUIT ends the connection, so it comes alone.
same("quit", "QUIT")
ours("lease.grant lease.revoke", """
    LEASE.GRANT 60000 ID 11 NAME case
    LEASE.REVOKE 11
""", r"\+OK")
ours("lease.grant", "LEASE.GRANT 0", r"-ERR expected LEASE.GRANT milliseconds")
ours("lease.renew", "LEASE.RENEW 4000000000", r"\*1\r\n(\$-1|_)\r\n")
ours("lease.info", "LEASE.INFO 4000000000", r"(\$-1|_)\r\n")
ours("lease.info", """
    LEASE.GRANT 60000 ID 12
    SET k v LEASE 12
    LEASE.INFO 12
    LEASE.REVOKE 12
    EXISTS k
""", r":0\r\n")
ours("lease.list", "LEASE.LIST AFTER 9000000000000000000", r"\*0\r\n")
ours("lease.attach", "LEASE.ATTACH 4000000000 k", r"-NOLEASE lease 4000000000 was never granted")
ours("lease.detach", "LEASE.DETACH nothing", r":0\r\n")
ours("setseq", "SETSEQ q/ v", r"\$22\r\nq/\d{20}\r\n")
ours("setseq", "SETSEQ q/ v LEASE 4000000000", r"-NOLEASE lease 4000000000 was never granted")
ours("setseq multi exec", """
    MULTI
    SETSEQ q/ v
    SETSEQ q/ v
    EXEC
""", r"\*2\r\n\$22\r\nq/\d{20}\r\n-KEYEXISTS one transaction makes one sequential key of a prefix")
ours("set", "SET k v TOKEN 9000000000000000000", r"-FENCED no lease was granted with the token")
