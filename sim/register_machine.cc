// A command: the byte 'S', the key, the value; both 8 bytes, little-endian.
#include <leasehold/sim/register_machine.h>

#include <string>
#include <string_view>
#include <utility>

namespace leasehold::sim {
namespace {

constexpr std::size_t kCommandBytes = 17;

void put(std::string& out, std::uint64_t number) {
  for (int i = 0; i < 8; ++i) {
    out.push_back(static_cast<char>(static_cast<unsigned char>(number >> (8 * i))));
  }
}

std::uint64_t get(std::string_view bytes) {
  std::uint64_t number = 0;
  for (std::size_t i = 8; i > 0; --i) {
    number = (number << 8) | static_cast<unsigned char>(bytes[i - 1]);
  }
  return number;
}

}  // namespace

Bytes RegisterMachine::encode_set(std::uint64_t key, std::uint64_t value) {
  std::string out = "S";
  put(out, key);
  put(out, value);
  return Bytes(std::move(out));
}

Bytes RegisterMachine::encode_value(std::uint64_t value) {
  std::string out;
  put(out, value);
  return Bytes(std::move(out));
}

std::vector<Bytes> RegisterMachine::apply(const std::vector<node::Command>& commands,
                                          raft::Index last) {
  std::vector<Bytes> results;
  for (const node::Command& command : commands) {
    if (command.bytes.size() != kCommandBytes || command.bytes[0] != 'S') {
      ++malformed_;
      results.push_back(Bytes(std::string_view("malformed")));
      continue;
    }
    const std::uint64_t key = get(command.bytes.substr(1));
    const std::uint64_t value = get(command.bytes.substr(9));
    present_.values[key] = value;
    results.push_back(encode_value(value));
  }
  present_.applied = last;
  return results;
}

std::uint64_t RegisterMachine::value(std::uint64_t key) const {
  const auto found = present_.values.find(key);
  return found == present_.values.end() ? 0 : found->second;
}

}  // namespace leasehold::sim
