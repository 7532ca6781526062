// How libFuzzer changes what a client sends: by requests and their words as well as by bytes, of
// which most changes break a length, and with it all that follows.
#include <leasehold/server/commands/command_table.h>
#include <leasehold/server/front/resp.h>
#include <leasehold/tests/fuzz/mutator.h>

#include <iterator>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

namespace leasehold::fuzz {
namespace {

using Request = std::vector<std::string>;

std::vector<std::string> words_of(const std::string& text) {
  std::istringstream in(text);
  return {std::istream_iterator<std::string>(in), {}};
}

// Few keys, so that commands meet; what commands know as options; numbers at some limits.
constexpr std::string_view kKeys[] = {"a", "b", "k", "k{a}", "", {"\0\r\n\xff", 4}};
const std::vector<std::string> kWords = words_of(
    R"(0 1 2 -1 7 100 1000 30000 1.5s 10s v x * a*
       [a-b]? nx xx gt lt get ex px exat pxat ttl keepttl persist replace
       lease token id name holder grace soft delay keys key prefix from revision filterby
       pattern match count type string values open close on off yes no addr skipme
       sync async touch reset help quorum stale log auth setname 3 4294967296 list after
       answered -9223372036854775808 9223372036854775807 1e3 99999999999999999999
       skip 1s [a- __keyspace@0__:a __keyspace@0__:* __keyevent@0__:* __keyevent@0__:set)");

template <typename List>
std::string one_of(const List& list, Random& random) {
  return std::string(list[random.below(std::size(list))]);
}

std::string any_word(Random& random) {
  return random.chance(1, 3) ? one_of(kKeys, random) : one_of(kWords, random);
}

Request any_request(Random& random) {
  const auto commands =
      static_cast<std::uint64_t>(server::commands_end() - server::commands_begin());
  const server::CommandSpec& spec = server::commands_begin()[random.below(commands)];
  Request request;
  const std::size_t bar = spec.name.find('|');
  request.emplace_back(spec.name.substr(0, bar));
  if (bar != std::string_view::npos) request.emplace_back(spec.name.substr(bar + 1));
  std::size_t words = static_cast<std::size_t>(spec.arity < 0 ? -spec.arity : spec.arity);
  if (spec.arity < 0) words += random.below(5);
  const auto first_key = static_cast<std::size_t>(spec.first_key);
  while (request.size() < words) {
    const bool key = first_key != 0 && request.size() == first_key;
    request.push_back(key ? one_of(kKeys, random) : any_word(random));
  }
  return request;
}

void change(std::vector<Request>& requests, Random& random) {
  const std::uint64_t what = random.below(8);
  if (requests.empty() || what < 3) return insert_part(requests, any_request(random), random);
  if (what < 5) return rearrange(requests, random);
  Request& request = any_of(requests, random);
  if (request.empty() || what == 5) return insert_part(request, any_word(random), random);
  if (what == 6) return rearrange(request, random);
  any_of(request, random) = any_word(random);
}

}  // namespace

std::string changed(std::string_view input, Random& random) {
  std::string out(1, input.empty() ? '?' : input.front());
  input.remove_prefix(std::min<std::size_t>(input.size(), 1));
  if (random.chance(1, 16)) out.front() = static_cast<char>(random.below(256));
  std::vector<Request> requests;
  server::RequestParser parser;
  while (parser.parse(input) == server::ParseStatus::complete) {
    requests.emplace_back(parser.args().begin(), parser.args().end());
    input.remove_prefix(parser.consumed());
  }
  for (std::uint64_t more = 1 + random.below(kChangesMax); more > 0; --more) {
    change(requests, random);
  }
  for (const Request& request : requests) {
    server::append_array(out, request.size());
    for (const std::string& word : request) server::append_bulk(out, word);
  }
  return out.append(input);
}

}  // namespace leasehold::fuzz
