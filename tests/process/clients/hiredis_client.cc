// hiredis, unmodified: hiredis_client PORT PORT PORT (of the nodes). Prints what it did. By TLS and
// as a user if the test has set ACCESS_* (secured.py), and if hiredis is of release 1.0 or later.
#include <hiredis/hiredis.h>
#ifdef HIREDIS_HAS_TLS
#include <hiredis/hiredis_ssl.h>
#endif

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

using Context = std::unique_ptr<redisContext, decltype(&redisFree)>;

/// What the test has set: ACCESS_`name`, or null.
const char* access(const char* name) {
  return std::getenv((std::string("ACCESS_") + name).c_str());
}

Context connect_plain(int port) {
  Context context(redisConnect("127.0.0.1", port), redisFree);
  check(context != nullptr && context->err == 0, "cannot connect");
  return context;
}

#ifdef HIREDIS_HAS_TLS

bool is_refusal(const Reply& reply, const char* word) {
  return reply->type == REDIS_REPLY_ERROR && std::strncmp(reply->str, word, std::strlen(word)) == 0;
}

/// With a failed handshake, too: then the context says so.
Context connect_by_tls(int port, const char* authority, const char* certificate = nullptr,
                       const char* key = nullptr) {
  Context context = connect_plain(port);
  redisSSLContextError error = REDIS_SSL_CTX_NONE;
  const std::unique_ptr<redisSSLContext, decltype(&redisFreeSSLContext)> tls(
      redisCreateSSLContext(authority, nullptr, certificate, key, nullptr, &error),
      redisFreeSSLContext);
  check(tls != nullptr, redisSSLContextGetError(error));
  redisInitiateSSLWithContext(context.get(), tls.get());
  return context;
}

Context connect(int port) {
  if (access("CA") == nullptr) return connect_plain(port);
  Context context = connect_by_tls(port, access("CA"));
  check(is_text(call(context.get(), "AUTH %s %s", access("USER"), access("PASSWORD")),
                REDIS_REPLY_STATUS, "OK"),
        "AUTH");
  return context;
}

/// What a node refuses, as hiredis reports it.
void refusals(int port) {
  const Context stranger = connect_by_tls(port, access("CA"));
  check(is_refusal(call(stranger.get(), "GET h:x"), "NOAUTH"), "no user");
  check(is_refusal(call(stranger.get(), "AUTH %s wrong", access("USER")), "WRONGPASS"),
        "a wrong password");
  const Context user = connect(port);
  check(is_refusal(call(user.get(), "GET forbidden"), "NOPERM"), "another key");
  check(is_refusal(call(user.get(), "LEASEHOLD MEMBER LIST"), "NOPERM"), "a command of operators");
  const Context distrustful = connect_by_tls(port, access("OTHER_CA"));
  check(std::strstr(distrustful->errstr, "certificate verify failed") != nullptr,
        std::string("a server of another authority: ") + distrustful->errstr);
  const Context alien =
      connect_by_tls(port, access("CA"), access("OTHER_CERT"), access("OTHER_KEY"));
  const Reply answer(static_cast<redisReply*>(redisCommand(alien.get(), "PING")), freeReplyObject);
  check(answer == nullptr && alien->err != 0, "a certificate of another authority");
  const Context certified = connect_by_tls(port, access("CA"), access("CERT"), access("KEY"));
  check(is_text(call(certified.get(), "ACL WHOAMI"), REDIS_REPLY_STRING, access("USER")),
        "the user of a certificate");
}

#else

constexpr int kSkippedStatus = 77;

Context connect(int port) {
  if (access("CA") == nullptr) return connect_plain(port);
  std::printf("hiredis %d.%d has no TLS\n", HIREDIS_MAJOR, HIREDIS_MINOR);
  std::exit(kSkippedStatus);
}

void refusals(int /*port*/) {}

#endif

void one_node(int port) {
  const Context context = connect(port);
  redisContext* c = context.get();
  check(is_text(call(c, "PING"), REDIS_REPLY_STATUS, "PONG"), "PING");
  const char bytes[] = {'a', '\0', '\r', '\n'};
  check(is_text(call(c, "SET h:%d %b", port, bytes, sizeof(bytes)), REDIS_REPLY_STATUS, "OK"),
        "SET");
  const Reply got = call(c, "GET h:%d", port);
  check(got->type == REDIS_REPLY_STRING && got->len == sizeof(bytes) &&
            std::memcmp(got->str, bytes, sizeof(bytes)) == 0,
        "GET");
  check(call(c, "GET h:nothing")->type == REDIS_REPLY_NIL, "GET h:nothing");
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
  for (int i = 1; i < argc; ++i) {
    one_node(std::atoi(argv[i]));
    if (access("CA") != nullptr) refusals(std::atoi(argv[i]));
  }
  std::printf("hiredis %d.%d: commands, binary values, a pipeline of 10000, MULTI%s\n",
              HIREDIS_MAJOR, HIREDIS_MINOR,
              access("CA") == nullptr ? "" : "; by TLS as a user, and what that user is refused");
}
