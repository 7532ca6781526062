// Commands of Redis that are not here, and why: the client reads what to do, and not only "unknown
// command".
#include <leasehold/server/commands/command_table.h>
#include <leasehold/server/front/words.h>

#include <fmt/format.h>

namespace leasehold::server {
namespace {

constexpr const char* kTypes = "every value is a string (docs/resp.md)";
constexpr const char* kMessages =
    "this is a store of keys, it passes no messages; SUBSCRIBE tells what happens to keys";
constexpr const char* kScripts =
    "there is no Lua: EVAL knows the scripts of lock libraries (docs/resp.md, Scripts); else use "
    "MULTI and WATCH";
constexpr const char* kDisk =
    "every acknowledged write is on the disks of a majority already; LEASEHOLD BACKUP writes a "
    "backup";
constexpr const char* kMembers = "elections decide which node leads";
constexpr const char* kMove = "there is only DB 0, with nothing to move keys to";
constexpr const char* kDump =
    "a value is its bytes and has no other form: GET and SET carry one key elsewhere, LEASEHOLD "
    "BACKUP all of them";
constexpr const char* kBits =
    "of the commands on bits there are SETBIT, GETBIT and BITCOUNT; GETRANGE and SETRANGE read and "
    "write bytes, with WATCH and MULTI if others write too";
constexpr const char* kInside = "use INFO, LEASEHOLD STATUS and LEASEHOLD EXPLAIN";

struct Refusal {
  const char* reason;
  std::string_view names;  ///< a space before and after each
};

constexpr Refusal kRefusals[] = {
    {kTypes,
     " blmove blmpop blpop brpop brpoplpush bzmpop bzpopmax bzpopmin geoadd geodist geohash geopos "
     "georadius georadiusbymember geosearch geosearchstore hdel hexists hget hgetall hincrby "
     "hincrbyfloat hkeys hlen hmget hmset hrandfield hscan hset hsetnx hstrlen hvals lindex "
     "linsert llen lmove lmpop lpop lpos lpush lpushx lrange lrem lset ltrim pfadd pfcount pfmerge "
     "rpop "
     "rpoplpush rpush rpushx sadd scard sdiff sdiffstore sinter sintercard sinterstore sismember "
     "smembers smismember smove sort sort_ro spop srandmember srem sscan sunion sunionstore xack "
     "xadd xautoclaim xclaim xdel xgroup xinfo xlen xpending xrange xread xreadgroup xrevrange "
     "xtrim zadd zcard zcount zdiff zincrby zinter zlexcount zmpop zmscore zpopmax zpopmin "
     "zrandmember zrange zrangebylex zrangebyscore zrank zrem zremrangebylex zremrangebyrank "
     "zremrangebyscore zrevrange zrevrank zscan zscore zunion "},
    {kBits, " bitfield bitfield_ro bitop bitpos "},
    {kMessages, " publish pubsub spublish ssubscribe sunsubscribe monitor "},
    {kScripts, " eval_ro evalsha_ro fcall fcall_ro function "},
    {kDisk, " bgrewriteaof bgsave lastsave save sync psync waitaof "},
    {kMembers, " replicaof slaveof failover replconf asking "},
    {kMove, " move swapdb "},
    {kDump, " dump restore migrate "},
    {kInside, " debug memory latency lolwut module "},
    {"send SIGTERM to the process", " shutdown "},
};

}  // namespace

const char* reason_of_refusal(std::string_view name) {
  if (name.empty() || name.size() > kQuotedBytesMax) return nullptr;
  const std::string wanted = fmt::format(" {} ", lowered(name));
  if (wanted.find(' ', 1) != wanted.size() - 1) return nullptr;
  for (const Refusal& refusal : kRefusals) {
    if (refusal.names.find(wanted) != std::string_view::npos) return refusal.reason;
  }
  return nullptr;
}

std::string problem_of_unknown(const Arguments& args) {
  const CommandSpec* container = find_command_named(args[0]);
  if (container != nullptr && args.size() > 1) {
    std::string upper(container->name);
    for (char& c : upper) c = static_cast<char>(c - 'a' + 'A');
    return fmt::format("ERR unknown subcommand {}. Try {} HELP.", quoted(args[1]), upper);
  }
  if (const char* reason = reason_of_refusal(args[0])) {
    return fmt::format("ERR {} is not supported: {}", quoted(args[0]), reason);
  }
  return fmt::format("ERR unknown command {}. COMMAND lists what is known here", quoted(args[0]));
}

}  // namespace leasehold::server
