#include <leasehold/tls/name.h>

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <system_error>
#include <utility>

namespace leasehold::tls {

namespace {

constexpr std::string_view kScheme = "leasehold://";
constexpr std::string_view kNode = "node";
constexpr std::string_view kUser = "user";
constexpr std::size_t kUuidDigits = 32;
constexpr std::size_t kNodeIdDigitsMax = 20;
constexpr std::string_view kDigits = "0123456789ABCDEF";
/// No valid name has a longer URI.
constexpr std::size_t kUriBytesMax = kScheme.size() + 3 * kClusterNameBytesMax +
                                     std::string_view("/user/").size() + 3 * kUserNameBytesMax;

Error malformed(std::string_view what) {
  return Error{ErrorCode::malformed, fmt::format("not a name of Leasehold: {}", what)};
}

Error invalid(std::string message) {
  return Error{ErrorCode::invalid_argument, std::move(message)};
}

/// RFC 3986, 2.3.
bool stands_for_itself(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
         c == '.' || c == '_' || c == '~';
}

std::string encode(std::string_view bytes) {
  std::string text;
  for (const char c : bytes) {
    if (stands_for_itself(c)) {
      text += c;
      continue;
    }
    const auto byte = static_cast<unsigned char>(c);
    text += '%';
    text += kDigits[byte / 16];
    text += kDigits[byte % 16];
  }
  return text;
}

/// None: not what encode() makes.
std::optional<std::string> decode(std::string_view text) {
  std::string bytes;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      if (!stands_for_itself(text[i])) return std::nullopt;
      bytes += text[i];
      continue;
    }
    if (text.size() - i < 3) return std::nullopt;
    const std::size_t high = kDigits.find(text[i + 1]);
    const std::size_t low = kDigits.find(text[i + 2]);
    if (high == std::string_view::npos || low == std::string_view::npos) return std::nullopt;
    const char byte = static_cast<char>(static_cast<unsigned char>(high * 16 + low));
    if (stands_for_itself(byte)) return std::nullopt;
    bytes += byte;
    i += 2;
  }
  return bytes;
}

/// Takes what stands in front of the next slash, or all of it.
std::string_view next_part(std::string_view& rest) {
  const std::size_t end = rest.find('/');
  const std::string_view part = rest.substr(0, end);
  rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
  return part;
}

std::optional<std::uint64_t> parse_id(std::string_view text) {
  if (text.empty() || text.size() > kNodeIdDigitsMax || text.front() == '0') return std::nullopt;
  std::uint64_t id = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), id);
  if (problem != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return id;
}

bool is_uuid(std::string_view text) {
  return text.size() == kUuidDigits &&
         text.find_first_not_of("0123456789abcdef") == std::string_view::npos &&
         text.find_first_not_of('0') != std::string_view::npos;
}

Result<void> validate_cluster(const std::string& cluster) {
  if (!cluster.empty() && cluster.size() <= kClusterNameBytesMax) return {};
  return invalid(fmt::format("a cluster's name has 1 to {} bytes", kClusterNameBytesMax));
}

Result<void> validate(const NodeName& name) {
  if (name.id == 0) return invalid("node id 0: choose the number that the node is started with");
  if (name.uuid == kAnyUuid || is_uuid(name.uuid)) return validate_cluster(name.cluster);
  return invalid(
      fmt::format("the uuid of a data directory is {} hexadecimal digits in lower case, not all "
                  "zero; {} stands for any directory of the node",
                  kUuidDigits, kAnyUuid));
}

Result<void> validate(const UserName& name) {
  if (!name.user.empty() && name.user.size() <= kUserNameBytesMax) {
    return validate_cluster(name.cluster);
  }
  return invalid(fmt::format("a user's name has 1 to {} bytes", kUserNameBytesMax));
}

Result<CertificateName> parse_parts(std::string_view rest) {
  const auto cluster = decode(next_part(rest));
  const std::string_view kind = next_part(rest);
  if (!cluster) return malformed("the cluster is not percent-encoded as it has to be");
  if (kind == kUser) {
    const auto user = decode(rest);
    if (!user) return malformed("the user is not percent-encoded as it has to be");
    return CertificateName(UserName{*cluster, *user});
  }
  if (kind != kNode) return malformed("it names neither a node nor a user");
  const auto id = parse_id(next_part(rest));
  if (!id) return malformed("the node's id is not a decimal number from 1 on");
  return CertificateName(NodeName{*cluster, *id, std::string(rest)});
}

}  // namespace

Result<void> validate_name(const CertificateName& name) {
  return std::visit([](const auto& one) { return validate(one); }, name);
}

std::string to_uri(const CertificateName& name) {
  if (const auto* node = std::get_if<NodeName>(&name)) {
    return fmt::format("{}{}/{}/{}/{}", kScheme, encode(node->cluster), kNode, node->id,
                       node->uuid);
  }
  const auto& user = std::get<UserName>(name);
  return fmt::format("{}{}/{}/{}", kScheme, encode(user.cluster), kUser, encode(user.user));
}

Result<CertificateName> parse_uri(std::string_view uri) {
  if (uri.substr(0, kScheme.size()) != kScheme) return malformed("another scheme");
  if (uri.size() > kUriBytesMax) return malformed("too long");
  Result<CertificateName> name = parse_parts(uri.substr(kScheme.size()));
  if (!name.ok()) return name;
  if (const auto valid = validate_name(name.value()); !valid.ok()) {
    return malformed(valid.error().message);
  }
  return name;
}

}  // namespace leasehold::tls
