#include <leasehold/tls/group_key.h>

#include <fmt/format.h>

#include <fcntl.h>
#include <openssl/crypto.h>
#include <openssl/sha.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <system_error>

namespace leasehold::tls {

namespace {

/// A file above this is not a key file.
constexpr std::size_t kFileBytesMax = 4096;

std::optional<unsigned> digit(char c) {
  if (c >= '0' && c <= '9') return static_cast<unsigned>(c - '0');
  if (c >= 'a' && c <= 'f') return static_cast<unsigned>(c - 'a') + 10;
  if (c >= 'A' && c <= 'F') return static_cast<unsigned>(c - 'A') + 10;
  return std::nullopt;
}

/// Sixteen digits of a hash that nothing else uses, so that the name says nothing about the key.
std::string name_of(const std::array<unsigned char, kGroupKeyBytes>& key) {
  constexpr std::string_view kLabel = "leasehold group key name 1";
  std::array<unsigned char, kLabel.size() + kGroupKeyBytes> text{};
  std::copy(kLabel.begin(), kLabel.end(), text.begin());
  std::copy(key.begin(), key.end(), text.begin() + kLabel.size());
  std::array<unsigned char, SHA256_DIGEST_LENGTH> hash{};
  SHA256(text.data(), text.size(), hash.data());
  OPENSSL_cleanse(text.data(), text.size());
  std::string name;
  for (std::size_t i = 0; i < 8; ++i) name += fmt::format("{:02x}", hash[i]);
  return name;
}

Error cannot_read(const std::string& path, int code) {
  return Error{ErrorCode::io, fmt::format("cannot read the key file {}: {}", path,
                                          std::generic_category().message(code))};
}

/// The whole of a small file, which only its owner may read.
Result<std::string> read_private(const std::string& path) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return cannot_read(path, errno);
  struct stat found {};
  std::string text(kFileBytesMax + 1, '\0');
  const bool known = ::fstat(file, &found) == 0;
  const ssize_t length = known ? ::read(file, text.data(), text.size()) : -1;
  const int code = errno;
  ::close(file);
  if (length < 0) return cannot_read(path, code);
  if ((found.st_mode & (S_IRWXG | S_IRWXO)) != 0) {
    return Error{
        ErrorCode::invalid_argument,
        fmt::format("others than its owner may read or write the key file {}: chmod 600 {}", path,
                    path)};
  }
  text.resize(static_cast<std::size_t>(length));
  if (text.size() > kFileBytesMax) {
    return Error{ErrorCode::malformed, fmt::format("{} is too large for a key file", path)};
  }
  return text;
}

}  // namespace

Result<GroupKey> GroupKey::parse(std::string_view hex) {
  const Error wrong{
      ErrorCode::malformed,
      fmt::format("a group key is {} hexadecimal digits: make one with leasehold cert key",
                  2 * kGroupKeyBytes)};
  if (hex.size() != 2 * kGroupKeyBytes) return wrong;
  GroupKey key;
  unsigned all = 0;
  for (std::size_t i = 0; i < kGroupKeyBytes; ++i) {
    const auto high = digit(hex[2 * i]);
    const auto low = digit(hex[2 * i + 1]);
    if (!high || !low) return wrong;
    key.bytes_[i] = static_cast<unsigned char>(*high * 16 + *low);
    all |= key.bytes_[i];
  }
  if (all == 0)
    return Error{ErrorCode::malformed, "the group key is zero: make one with leasehold cert key"};
  key.name_ = name_of(key.bytes_);
  return key;
}

GroupKey::~GroupKey() {
  OPENSSL_cleanse(bytes_.data(), bytes_.size());
}

Result<std::vector<GroupKey>> read_group_keys(const std::string& path) {
  Result<std::string> text = read_private(path);
  if (!text.ok()) return text.error();
  std::vector<GroupKey> keys;
  std::optional<Error> problem;
  std::string_view rest = text.value();
  for (int line = 1; !rest.empty() && !problem; ++line) {
    const std::size_t end = rest.find('\n');
    std::string_view word = rest.substr(0, end);
    rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
    while (!word.empty() && (word.back() == '\r' || word.back() == ' ')) word.remove_suffix(1);
    if (word.empty() || word.front() == '#') continue;
    Result<GroupKey> key = GroupKey::parse(word);
    if (!key.ok()) {
      problem =
          Error{key.error().code, fmt::format("{}, line {}: {}", path, line, key.error().message)};
    } else if (keys.size() == kGroupKeysMax) {
      problem =
          Error{ErrorCode::malformed, fmt::format("{} has more than {} keys", path, kGroupKeysMax)};
    } else {
      keys.push_back(std::move(key).value());
    }
  }
  OPENSSL_cleanse(text.value().data(), text.value().size());
  if (!problem && keys.empty()) {
    problem = Error{ErrorCode::malformed,
                    fmt::format("{} has no key: make one with leasehold cert key {}", path, path)};
  }
  if (problem) return *problem;
  return keys;
}

}  // namespace leasehold::tls
