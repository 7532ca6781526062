#include <leasehold/server/commands/command_categories.h>
#include <leasehold/server/commands/command_keys.h>
#include <leasehold/server/commands/command_rows.h>
#include <leasehold/server/commands/commands.h>
#include <leasehold/server/front/words.h>

#include <array>
#include <iterator>

namespace leasehold::server {
namespace command_rows {
namespace {

constexpr Effect kNone = Effect::none;
constexpr Effect kRead = Effect::read;
/// Asks every group: of a connection one at a time, so that a pipeline does not flood the node.
constexpr Effect kInTurn = Effect::after_all;

// clang-format off
/// Ascending by name.
constexpr CommandSpec kCommands[] = {
    other("acl", -2, kNone, Group::server, run_help, "Users and what they may do"),
    other("acl|cat", -2, kNone, Group::server, run_acl_cat,
          "The categories of commands, or the commands of one: [category]"),
    other("acl|deluser", -3, Effect::after_all, Group::server, run_acl_deluser,
          "Removes users and closes their connections"),
    other("acl|dryrun", -4, kNone, Group::server, run_acl_dryrun,
          "Whether a user may run a command: user command ..."),
    other("acl|genpass", -2, kNone, Group::server, run_acl_genpass,
          "A random password: [bits]"),
    other("acl|getuser", 3, kNone, Group::server, run_acl_getuser, "The rules of a user, in parts"),
    other("acl|help", 2, kNone, Group::server, run_help, "Lists the forms of ACL"),
    other("acl|list", 2, kNone, Group::server, run_acl_list, "All users with their rules"),
    other("acl|log", -2, kNone, Group::server, run_acl_log,
          "What users were refused at this node: [count | RESET]"),
    other("acl|setuser", -3, Effect::after_all, Group::server, run_acl_setuser,
          "Makes or changes a user: name [rule ...]"),
    other("acl|users", 2, kNone, Group::server, run_acl_users, "The names of the users"),
    other("acl|whoami", 2, kNone, Group::server, run_acl_whoami, "The user of this connection"),
    change("append", 3, Group::string, kOneKey, make_append,
           "Writes after the end of a value"),
    other("auth", -2, Effect::after_all, Group::connection, run_auth,
          "Proves who the connection is: [user] password"),
    records(query("bitcount", -2, Group::string, kOneKey, make_bitcount, Form::plain,
                  "Counts the bits that are set: key [start end [BYTE | BIT]]")),
    other("client", -2, kNone, Group::connection, run_help, "Tells about connections"),
    other("client|getname", 2, kNone, Group::connection, run_client_getname,
          "The name of this connection"),
    other("client|help", 2, kNone, Group::connection, run_help, "Lists the forms of CLIENT"),
    other("client|id", 2, kNone, Group::connection, run_client_id,
          "The number of this connection"),
    other("client|info", 2, kNone, Group::connection, run_client_info,
          "Tells about this connection"),
    other("client|kill", -3, kNone, Group::connection, run_client_kill,
          "Closes connections of this node: ADDR:PORT, or ID, ADDR, SKIPME"),
    other("client|list", -2, kNone, Group::connection, run_client_list,
          "Lists the connections of this node"),
    other("client|no-evict", 3, kNone, Group::connection, run_client_on_off,
          "Accepted, without effect"),
    other("client|no-touch", 3, kNone, Group::connection, run_client_on_off,
          "Accepted, without effect"),
    other("client|reply", 3, kNone, Group::connection, run_client_reply,
          "Which commands are answered: ON, OFF or SKIP"),
    other("client|setinfo", 4, kNone, Group::connection, run_client_noted,
          "Accepted, without effect"),
    other("client|setname", 3, kNone, Group::connection, run_client_setname,
          "Names this connection"),
    other("cluster", -2, kNone, Group::cluster, run_help, "Tells about the cluster"),
    in_group(scan("cluster|countkeysinslot", 3, Group::cluster, scan_slot,
                  "Counts the keys of a slot"), group_of_slot),
    other("cluster|help", 2, kNone, Group::cluster, run_help, "Lists the forms of CLUSTER"),
    other("cluster|info", 2, kInTurn, Group::cluster, run_cluster_info,
          "The state of the cluster as text"),
    other("cluster|keyslot", 3, kNone, Group::cluster, run_cluster_keyslot, "The slot of a key"),
    other("cluster|myid", 2, kNone, Group::cluster, run_cluster_myid,
          "This node's name as CLUSTER NODES has it"),
    other("cluster|nodes", 2, kInTurn, Group::cluster, run_cluster_nodes,
          "The nodes, one a line"),
    other("cluster|shards", 2, kInTurn, Group::cluster, run_cluster_shards,
          "The one shard with its nodes"),
    other("cluster|slots", 2, kInTurn, Group::cluster, run_cluster_slots,
          "The one range of slots with its nodes, the leader first"),
    other("command", -1, kNone, Group::server, run_command, "Lists the commands"),
    other("command|count", 2, kNone, Group::server, run_command_count, "Counts the commands"),
    other("command|docs", -2, kNone, Group::server, run_command_docs, "Describes commands"),
    other("command|getkeys", -4, kNone, Group::server, run_command_getkeys,
          "The keys among the words of a command"),
    other("command|help", 2, kNone, Group::server, run_help, "Lists the forms of COMMAND"),
    other("command|info", -2, kNone, Group::server, run_command_info,
          "Arity, effect and keys of commands"),
    other("command|list", -2, kNone, Group::server, run_command_list,
          "The names of the commands [FILTERBY PATTERN pattern]"),
    other("config", -2, kNone, Group::server, run_help, "Shows settings"),
    other("config|get", -3, kNone, Group::server, run_config_get,
          "Settings whose names match patterns"),
    other("config|help", 2, kNone, Group::server, run_help, "Lists the forms of CONFIG"),
    other("config|set", -4, kNone, Group::server, run_config_set,
          "Changes some settings until the node stops: name value ..."),
    change("copy", -3, Group::generic, kTwoKeys, make_copy,
           "Writes a value and its time to another key: key new [DB 0] [REPLACE]"),
    in_each_group(query("dbsize", 1, Group::server, kNoKeys, make_dbsize, Form::plain,
                        "Counts the keys")),
    change("decr", 2, Group::string, kOneKey, make_decr, "Subtracts 1 from a number"),
    change("decrby", 3, Group::string, kOneKey, make_decrby, "Subtracts from a number"),
    change("del", -2, Group::generic, kAllKeys, make_del, "Deletes keys"),
    multi("discard", 1, Effect::after_reads, kNoKeys, run_discard,
          "Forgets the queued commands and the watched keys"),
    other("echo", 2, kNone, Group::connection, run_echo, "Returns its argument",
          InMulti::here),
    other("eval", -3, Effect::write, Group::scripting, run_eval,
          "Does the work of a script of a lock library: text numkeys key ... argument ..."),
    other("evalsha", -3, Effect::write, Group::scripting, run_evalsha,
          "The same, by the digest of a script that this node has seen"),
    multi("exec", 1, Effect::write, kNoKeys, run_exec,
          "Executes the queued commands as one, if no watched key has changed"),
    records(query("exists", -2, Group::generic, kAllKeys, make_exists, Form::plain,
                  "Counts the given keys that exist, at one instant")),
    change("expire", -3, Group::generic, kOneKey, make_expire,
           "Lets a key end after seconds: key seconds [NX | XX | GT | LT]"),
    change("expireat", -3, Group::generic, kOneKey, make_expireat,
           "Lets a key end at a second since 1970: key second [NX | XX | GT | LT]"),
    query("expiretime", 2, Group::generic, kOneKey, make_key_lease, Form::end_seconds,
          "The second since 1970 at which a key ends, or -1, or -2"),
    other("flushall", -1, Effect::alone, Group::server, run_flush,
          "Deletes all keys: [ASYNC | SYNC], with one meaning"),
    other("flushdb", -1, Effect::alone, Group::server, run_flush,
          "FLUSHALL: there is one database"),
    records(query("get", 2, Group::string, kOneKey, make_get, Form::plain, "Reads a value",
                  run_get)),
    records(query("getbit", 3, Group::string, kOneKey, make_getbit, Form::plain, "Reads one bit")),
    change("getdel", 2, Group::string, kOneKey, make_getdel, "Deletes a key and returns its value"),
    change("getex", -2, Group::string, kOneKey, make_getex,
           "Reads a value and changes its time: key [EX s | PX ms | EXAT s | PXAT ms | PERSIST]"),
    records(query("getrange", 4, Group::string, kOneKey, make_getrange, Form::plain,
                  "Reads a part of a value")),
    change("getset", 3, Group::string, kOneKey, make_getset, "Writes a value, returns the old one"),
    other("hello", -1, Effect::after_all, Group::connection, run_hello, "Chooses RESP2 or RESP3"),
    change("incr", 2, Group::string, kOneKey, make_incr, "Adds 1 to a number"),
    change("incrby", 3, Group::string, kOneKey, make_incrby, "Adds to a number"),
    change("incrbyfloat", 3, Group::string, kOneKey, make_incrbyfloat,
           "Adds a fraction to a number"),
    other("info", -1, kNone, Group::server, run_info, "Tells about this node as text"),
    in_each_group(scan("keys", 2, Group::generic, scan_keys, "All keys that match a pattern")),
    records(query("lcs", -3, Group::string, kTwoKeys, make_lcs, Form::common_part,
                  "The longest common subsequence: key key [LEN] [IDX] [MINMATCHLEN n] "
                  "[WITHMATCHLEN]")),
    change("lease.attach", 3, Group::leasehold, kSecondKey, make_lease_attach,
           "Attaches a key to a lease, which deletes the key when it ends"),
    change("lease.detach", 2, Group::leasehold, kOneKey, make_lease_detach,
           "Detaches a key from its lease"),
    change("lease.grant", -2, Group::leasehold, kNoKeys, make_lease_grant,
           "Grants a lease: milliseconds [ID id] [NAME name] [HOLDER holder] [GRACE milliseconds] "
           "[SOFT] [DELAY milliseconds]"),
    query("lease.info", -2, Group::leasehold, kNoKeys, make_lease_info, Form::lease_info,
          "A lease with its keys: id, or NAME name"),
    query("lease.list", -1, Group::leasehold, kNoKeys, make_lease_list, Form::plain,
          "Leases in the order of their ids: [AFTER id] [COUNT count]"),
    renewal("lease.renew", -2, make_lease_renew, run_lease_renew,
            "Gives leases their whole time again, at the leader without an entry in the log"),
    change("lease.revoke", 2, Group::leasehold, kNoKeys, make_lease_revoke,
           "Ends a lease and deletes its keys"),
    other("leasehold", -2, kNone, Group::leasehold, run_help,
          "What Redis does not have: how reads are justified, and this node as JSON"),
    other("leasehold|backup", -3, Effect::after_writes, Group::leasehold, run_leasehold_backup,
          "Writes a snapshot of this node to a file of this name in its folder backups"),
    other("leasehold|clock", 2, kNone, Group::leasehold, run_leasehold_clock,
          "What the clocks of this node show now, and which machine's they are"),
    other("leasehold|expect", -2, Effect::after_reads, Group::leasehold, run_leasehold_expect,
          "EXEC does nothing unless each key was last written by its revision: key revision ...",
          InMulti::run),
    other("leasehold|explain", 2, Effect::after_reads, Group::leasehold, run_leasehold_explain,
          "Why this connection's last read was served in its way"),
    other("leasehold|group", -2, kNone, Group::leasehold, run_leasehold_group,
          "The group for this connection's commands without keys: [number | KEY key]"),
    other("leasehold|help", 2, kNone, Group::leasehold, run_help, "Lists the forms of LEASEHOLD"),
    other("leasehold|host", 4, kNone, Group::leasehold, run_leasehold_host,
          "Of nodes with many groups: this one knows another node from now on: ADD id=host:port"),
    other("leasehold|member", -3, kNone, Group::leasehold, run_leasehold_member,
          "The members: LIST | ADD [WITNESS] id=host:port ... | PROMOTE | DEMOTE | REMOVE id ... | "
          "MOVE id=host:port ... | REPLACE old new ..."),
    other("leasehold|once", -5, Effect::write, Group::leasehold, run_leasehold_once,
          "Executes a write unless it was executed under this number before: session sequence "
          "[ANSWERED n] command ...", InMulti::run),
    other("leasehold|pool", -2, kInTurn, Group::leasehold, run_leasehold_pool,
          "What this node knows of all groups: [PLACE group id,...]"),
    scan("leasehold|range", -3, Group::leasehold, scan_range,
         "Keys with one prefix, at one revision: prefix [AFTER key] [COUNT n] [VALUES]"),
    other("leasehold|read", -4, Effect::after_writes, Group::leasehold, run_leasehold_read,
          "One read in another mode: lease | quorum | log | stale BOUND, then the command"),
    other("leasehold|readbackup", 4, kNone, Group::leasehold, run_leasehold_readbackup,
          "A part of a backup of this node: name, and the byte at which the part begins"),
    other("leasehold|readmode", -2, kNone, Group::leasehold, run_leasehold_readmode,
          "How this connection's reads are justified: [lease | quorum | log | stale BOUND]"),
    other("leasehold|reload", 2, kNone, Group::leasehold, run_leasehold_reload,
          "Reads this node's certificates, keys and list of revoked ones again, for both ports"),
    other("leasehold|session", -3, Effect::after_all, Group::leasehold, run_leasehold_session,
          "Sessions, which number writes to execute once: OPEN | CLOSE id | TOUCH id | LIST"),
    other("leasehold|settings", -2, kNone, Group::leasehold, run_leasehold_settings,
          "The numbers on which the group has agreed: nothing, or SET name value ..."),
    other("leasehold|slots", -2, Effect::after_all, Group::leasehold, run_leasehold_slots,
          "Slots that move among the groups: nothing | LIST, which group has which | MOVE slot | "
          "first-last ... TO group | CANCEL slot | first-last ..., which ends moves as a whole"),
    other("leasehold|snapshot", 2, kNone, Group::leasehold, run_leasehold_snapshot,
          "Makes this node's store durable and cuts its log to the tail"),
    other("leasehold|status", 2, kInTurn, Group::leasehold, run_leasehold_status,
          "This node as one JSON object"),
    other("leasehold|trace", -3, kNone, Group::leasehold, run_leasehold_trace,
          "Records the protocol of this node, without data of clients, for leasehold trace: START "
          "span | NEXT id | STOP id"),
    other("leasehold|traceparent", 3, kNone, Group::leasehold, run_leasehold_traceparent,
          "Makes the next command a part of this trace: 00-trace-span-flags, as W3C writes it"),
    other("leasehold|transfer", -2, Effect::after_writes, Group::leasehold, run_leasehold_transfer,
          "Transfers the leadership, to the voter that has most of the log or to [id]"),
    other("leasehold|unwatch", 2, kNone, Group::leasehold, run_leasehold_unwatch,
          "Ends LEASEHOLD WATCH", InMulti::refused, While::watching),
    other("leasehold|watch", -4, kRead, Group::leasehold, run_leasehold_watch,
          "Sends the changes of keys: KEY key | PREFIX prefix ... [FROM revision] [VALUES]"),
    records(query("mget", -2, Group::string, kAllKeys, make_mget, Form::plain,
                  "Reads several values at one instant")),
    change("mset", -3, Group::string, kPairs, make_mset, "Writes several values as one command"),
    change("msetnx", -3, Group::string, kPairs, make_msetnx,
           "Writes several values as one command if none of the keys exists"),
    multi("multi", 1, kNone, kNoKeys, run_multi, "Queues the commands from here on, until EXEC"),
    other("object", -2, kNone, Group::generic, run_help, "Tells how Redis would store a value"),
    query("object|encoding", 3, Group::generic, kSecondKey, make_object_encoding, Form::encoding,
          "How Redis would store the value: int, embstr or raw"),
    query("object|freq", 3, Group::generic, kSecondKey, make_object, Form::no_frequency,
          "Refused: nobody counts how often a key is read"),
    other("object|help", 2, kNone, Group::generic, run_help, "Lists the forms of OBJECT"),
    query("object|idletime", 3, Group::generic, kSecondKey, make_object, Form::no_idle_time,
          "Refused: nobody notes when a key was read"),
    query("object|refcount", 3, Group::generic, kSecondKey, make_object, Form::count_one, "1"),
    change("persist", 2, Group::generic, kOneKey, make_persist, "Lets a key live forever"),
    change("pexpire", -3, Group::generic, kOneKey, make_pexpire,
           "Lets a key end after milliseconds: key milliseconds [NX | XX | GT | LT]"),
    change("pexpireat", -3, Group::generic, kOneKey, make_pexpireat,
           "Lets a key end at a millisecond since 1970: key millisecond [NX | XX | GT | LT]"),
    query("pexpiretime", 2, Group::generic, kOneKey, make_key_lease, Form::end_milliseconds,
          "The millisecond since 1970 at which a key ends, or -1, or -2"),
    other("ping", -1, kNone, Group::connection, run_ping, "Returns PONG or its argument",
          InMulti::here, While::run),
    change("psetex", 4, Group::string, kOneKey, make_psetex,
           "Writes a value that ends after milliseconds"),
    other("psubscribe", -2, Effect::after_all, Group::connection, run_subscribe,
          "Sends the changes of keys: patterns of channels __keyspace@0__: and __keyevent@0__:",
          InMulti::refused, While::subscribed),
    query("pttl", 2, Group::generic, kOneKey, make_key_lease, Form::milliseconds_left,
          "The milliseconds until a key ends, -1 if it lives forever, -2 if there is none"),
    other("punsubscribe", -1, Effect::after_all, Group::connection, run_unsubscribe,
          "Ends PSUBSCRIBE", InMulti::refused, While::subscribed),
    other("quit", -1, kNone, Group::connection, run_quit, "Closes the connection", InMulti::run,
          While::run),
    in_each_group(scan("randomkey", 1, Group::generic, scan_random,
                       "One of the first 1,000 keys")),
    other("readonly", 1, kNone, Group::cluster, run_readonly,
          "Accepted, without effect: every node answers every read"),
    other("readwrite", 1, kNone, Group::cluster, run_readonly, "Accepted, without effect"),
    change("rename", 3, Group::generic, kTwoKeys, make_rename, "Moves a value to another key"),
    change("renamenx", 3, Group::generic, kTwoKeys, make_renamenx,
           "Moves a value to another key if that one does not exist"),
    other("reset", 1, Effect::after_all, Group::connection, run_reset,
          "Makes the connection like a new one", InMulti::run, While::run),
    other("role", 1, kNone, Group::server, run_role, "This node's role, for cluster clients"),
    in_group(scan("scan", -2, Group::generic, scan_some,
                  "Some keys and a cursor for the next ones: cursor [MATCH pattern] [COUNT n] "
                  "[TYPE t]"), group_of_cursor),
    other("script", -2, kNone, Group::scripting, run_help, "Tells about scripts of lock libraries"),
    other("script|exists", -3, kNone, Group::scripting, run_script_exists,
          "Which digests this node knows"),
    other("script|flush", -2, kNone, Group::scripting, run_script_flush,
          "Forgets the digests [ASYNC | SYNC]"),
    other("script|help", 2, kNone, Group::scripting, run_help, "Lists the forms of SCRIPT"),
    other("script|load", 3, kNone, Group::scripting, run_script_load,
          "Remembers a script of a lock library and returns its digest"),
    other("select", 2, kNone, Group::connection, run_select, "Accepts database 0"),
    change("set", -3, Group::string, kOneKey, make_set,
           "Writes a value: key value [NX | XX] [GET] [EX s | PX ms | EXAT s | PXAT ms | LEASE id "
           "| KEEPTTL] [TOKEN token]"),
    change("setbit", 4, Group::string, kOneKey, make_setbit,
           "Writes one bit, returns the one before"),
    change("setex", 4, Group::string, kOneKey, make_setex,
           "Writes a value that ends after seconds"),
    change("setnx", 3, Group::string, kOneKey, make_setnx,
           "Writes a value if the key does not exist"),
    change("setrange", 4, Group::string, kOneKey, make_setrange, "Writes over a part of a value"),
    // A client that finds the leader by the slots of keys uses the prefix.
    change("setseq", -3, Group::leasehold, kOneKey, make_setseq,
           "Writes a new key, the prefix and a number that rises: prefix value [LEASE lease]"),
    other("slowlog", -2, kNone, Group::server, run_help, "Tells about commands that took long"),
    other("slowlog|get", -2, kNone, Group::server, run_slowlog_get, "The newest slow commands"),
    other("slowlog|help", 2, kNone, Group::server, run_help, "Lists the forms of SLOWLOG"),
    other("slowlog|len", 2, kNone, Group::server, run_slowlog_len, "Counts the slow commands"),
    other("slowlog|reset", 2, kNone, Group::server, run_slowlog_reset, "Forgets them"),
    records(query("strlen", 2, Group::string, kOneKey, make_strlen, Form::plain,
                  "The length of a value")),
    other("subscribe", -2, Effect::after_all, Group::connection, run_subscribe,
          "Sends the changes of keys: channels __keyspace@0__:KEY and __keyevent@0__:EVENT",
          InMulti::refused, While::subscribed),
    records(query("substr", 4, Group::string, kOneKey, make_getrange, Form::plain,
                  "GETRANGE by its old name")),
    other("time", 1, kNone, Group::server, run_time, "The wall clock of this node",
          InMulti::here),
    records(query("touch", -2, Group::generic, kAllKeys, make_exists, Form::plain,
                  "Counts the given keys that exist")),
    query("ttl", 2, Group::generic, kOneKey, make_key_lease, Form::seconds_left,
          "The seconds until a key ends, -1 if it lives forever, -2 if there is none"),
    records(query("type", 2, Group::generic, kOneKey, make_exists, Form::type, "string, or none")),
    change("unlink", -2, Group::generic, kAllKeys, make_del, "Deletes keys"),
    other("unsubscribe", -1, Effect::after_all, Group::connection, run_unsubscribe,
          "Ends SUBSCRIBE", InMulti::refused, While::subscribed),
    multi("unwatch", 1, Effect::after_reads, kNoKeys, run_unwatch, "Ends WATCH"),
    other("wait", 3, Effect::after_writes, Group::server, run_wait,
          "How many other nodes are known to have the writes before it"),
    multi("watch", -2, kRead, kAllKeys, run_watch,
          "EXEC does nothing if one of the keys has changed by then"),
};
// clang-format on

}  // namespace
}  // namespace command_rows

namespace {

using command_rows::kCommands;

constexpr std::size_t kNameBytesMax = 32;

constexpr std::uint32_t hash_of(std::string_view lower_name) {
  std::uint32_t hash = 2166136261U;
  for (const char c : lower_name) hash = (hash ^ static_cast<unsigned char>(c)) * 16777619U;
  return hash ^ (hash >> 15U);
}

/// Open addressing, made by the compiler: a slot holds a position in kCommands, plus 1.
constexpr std::size_t kNameSlots = 1024;
static_assert(std::size(kCommands) < kNameSlots / 4);
constexpr std::array<std::uint8_t, kNameSlots> make_slots() {
  std::array<std::uint8_t, kNameSlots> slots{};
  for (std::size_t i = 0; i < std::size(kCommands); ++i) {
    std::size_t at = hash_of(kCommands[i].name) % kNameSlots;
    while (slots[at] != 0) at = (at + 1) % kNameSlots;
    slots[at] = static_cast<std::uint8_t>(i + 1);
  }
  return slots;
}
constexpr std::array<std::uint8_t, kNameSlots> kSlotTable = make_slots();

constexpr bool ascending() {
  for (std::size_t i = 1; i < std::size(kCommands); ++i) {
    if (!(kCommands[i - 1].name < kCommands[i].name)) return false;
  }
  return true;
}
static_assert(ascending());

const CommandSpec* find_lower(std::string_view name) {
  for (std::size_t at = hash_of(name) % kNameSlots; kSlotTable[at] != 0;
       at = (at + 1) % kNameSlots) {
    const CommandSpec& spec = kCommands[kSlotTable[at] - 1];
    if (spec.name == name) return &spec;
  }
  return nullptr;
}

}  // namespace

namespace {

class Table final : public CommandTable {
 public:
  const CommandSpec* find(const Arguments& args) const override { return find_command(args); }
  std::string problem_of_unknown(const Arguments& args) const override {
    return server::problem_of_unknown(args);
  }
  std::size_t number_of(const CommandSpec& spec) const override {
    return static_cast<std::size_t>(&spec - std::begin(kCommands));
  }
  std::vector<KeyUse> uses_of(const CommandSpec& spec, const Arguments& args) const override {
    return uses_of_command(spec, args);
  }
  std::size_t size() const override { return std::size(kCommands); }
  std::string_view name_of(std::size_t command) const override { return kCommands[command].name; }
  Categories categories_of(std::size_t command) const override {
    return categories_of_command(kCommands[command]);
  }
};

}  // namespace

const CommandTable& command_table() {
  static const Table table;
  return table;
}

const CommandSpec* commands_begin() {
  return std::begin(kCommands);
}
const CommandSpec* commands_end() {
  return std::end(kCommands);
}

const CommandSpec* find_command_named(std::string_view name) {
  if (name.size() > kNameBytesMax) return nullptr;
  char text[kNameBytesMax];
  std::transform(name.begin(), name.end(), text, lower);
  return find_lower({text, name.size()});
}

bool is_subcommand(const CommandSpec& spec) {
  return spec.name.find('|') != std::string_view::npos;
}

bool is_container(const CommandSpec& spec) {
  return spec.run == run_help && !is_subcommand(spec);
}

const CommandSpec* find_command(const Arguments& args) {
  const CommandSpec* spec = find_command_named(args[0]);
  if (spec == nullptr || args.size() < 2 || (!is_container(*spec) && spec->run != run_command)) {
    // A name with a bar is that of a subcommand; no client sends it.
    return spec != nullptr && is_subcommand(*spec) ? nullptr : spec;
  }
  if (spec->name.size() + 1 + args[1].size() > kNameBytesMax) return nullptr;
  std::string name(spec->name);
  name += '|';
  name += args[1];
  std::transform(name.begin(), name.end(), name.begin(), lower);
  return find_lower(name);
}

const char* group_name(CommandGroup group) {
  using Group = CommandGroup;
  switch (group) {
    case Group::string: return "string";
    case Group::generic: return "generic";
    case Group::transactions: return "transactions";
    case Group::connection: return "connection";
    case Group::server: return "server";
    case Group::cluster: return "cluster";
    case Group::leasehold: return "module";
    case Group::scripting: return "scripting";
  }
  return "";
}

}  // namespace leasehold::server
