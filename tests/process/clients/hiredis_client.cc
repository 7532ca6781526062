// hiredis, unmodified: hiredis_client PORT PORT PORT (of the nodes). Prints what it did.
#include <hiredis/hiredis.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>

namespace {

void check(bool condition, const std::string& what) {
  if (condition) return;
  std::fprintf(stderr, "hiredis: %s\n", what.c_str());
  std::exit(1);
}

using Reply = std::unique_ptr<redisReply, decltype(&freeReplyObject)>;

template <class... Args>
Reply call(redisContext* context, const char* format, Args... args) {
  Reply reply(static_cast<redisReply*>(redisCommand(context, format, args...)), freeReplyObject);
  check(reply != nullptr, std::string("no reply to ") + format + ": " + context->errstr);
  return reply;
}

bool is_text(const Reply& reply, int type, const char* text) {
  return reply->type == type && std::strcmp(reply->str, text) == 0;
}

void one_node(int port) {
  std::unique_ptr<redisContext, decltype(&redisFree)> context(redisConnect("127.0.0.1", port),
                                                              redisFree);
  check(context != nullptr && context->err == 0, "cannot connect");
  redisContext* c = context.get();
  check(is_text(call(c, "PING"), REDIS_REPLY_STATUS, "PONG"), "PING");
  const char bytes[] = {'a', '\0', '\r', '\n'};
  check(is_text(call(c, "SET h:%d %b", port, bytes, sizeof(bytes)), REDIS_REPLY_STATUS, "OK"),
        "SET");
  const Reply got = call(c, "GET h:%d", port);
  check(got->type == REDIS_REPLY_STRING && got->len == sizeof(bytes) &&
            std::memcmp(got->str, bytes, sizeof(bytes)) == 0,
        "GET");
  check(call(c, "GET nothing")->type == REDIS_REPLY_NIL, "GET nothing");
  check(call(c, "INCR h:%d", port)->type == REDIS_REPLY_ERROR, "INCR of text");
  check(call(c, "DEL h:%d h:n:%d", port, port)->integer == 1, "DEL");
  constexpr int kPipeline = 10000;
  for (int i = 0; i < kPipeline; ++i) redisAppendCommand(c, "INCR h:n:%d", port);
  for (int i = 1; i <= kPipeline; ++i) {
    void* raw = nullptr;
    check(redisGetReply(c, &raw) == REDIS_OK, "a pipeline breaks");
    const Reply reply(static_cast<redisReply*>(raw), freeReplyObject);
    check(reply->type == REDIS_REPLY_INTEGER && reply->integer == i, "a pipeline is out of step");
  }
  check(is_text(call(c, "MULTI"), REDIS_REPLY_STATUS, "OK"), "MULTI");
  check(is_text(call(c, "GET h:n:%d", port), REDIS_REPLY_STATUS, "QUEUED"), "QUEUED");
  const Reply results = call(c, "EXEC");
  check(results->type == REDIS_REPLY_ARRAY && results->elements == 1 &&
            std::strcmp(results->element[0]->str, "10000") == 0,
        "EXEC");
}

}  // namespace

int main(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) one_node(std::atoi(argv[i]));
  std::printf("hiredis %d.%d: commands, binary values, a pipeline of 10000, MULTI\n", HIREDIS_MAJOR,
              HIREDIS_MINOR);
}
