#include <leasehold/cli/client_flags.h>
#include <leasehold/server/front/duration.h>

#include <algorithm>

namespace leasehold::cli {
namespace {

bool contains(const std::vector<std::string_view>& flags, std::string_view flag) {
  return std::find(flags.begin(), flags.end(), flag) != flags.end();
}

Error wrong(std::string text) {
  return Error{ErrorCode::invalid_argument, std::move(text)};
}

}  // namespace

Result<ClientFlags> ClientFlags::parse(const std::vector<std::string>& given,
                                       const std::vector<std::string_view>& valued,
                                       const std::vector<std::string_view>& bare) {
  ClientFlags flags;
  for (std::size_t i = 0; i < given.size(); ++i) {
    if (given[i] == "--") {
      flags.rest_.assign(given.begin() + static_cast<std::ptrdiff_t>(i) + 1, given.end());
      break;
    }
    if (given[i].rfind('-', 0) != 0) {
      flags.words_.push_back(given[i]);
      continue;
    }
    const std::size_t equals = given[i].find('=');
    const bool inside = equals != std::string::npos;
    const std::string flag = given[i].substr(0, equals);
    if (contains(bare, flag) && !inside) {
      flags.values_[flag] = {""};
    } else if (!contains(valued, flag)) {
      return wrong("unknown option '" + given[i] + "'");
    } else if (!inside && i + 1 == given.size()) {
      return wrong(flag + " needs a value");
    } else {
      flags.values_[flag].push_back(inside ? given[i].substr(equals + 1) : given[i + 1]);
      i += inside ? 0 : 1;
    }
  }
  return flags;
}

std::string ClientFlags::text(std::string_view flag) const {
  const auto found = values_.find(flag);
  return found == values_.end() ? "" : found->second.back();
}

std::vector<std::string> ClientFlags::texts(std::string_view flag) const {
  const auto found = values_.find(flag);
  return found == values_.end() ? std::vector<std::string>() : found->second;
}

Result<lease::Duration> ClientFlags::duration(std::string_view flag,
                                              lease::Duration otherwise) const {
  if (!has(flag)) return otherwise;
  const auto parsed = server::parse_duration(text(flag));
  if (!parsed) return wrong(std::string(flag) + ": " + parsed.error().message);
  return parsed.value();
}

bool wants_help(const std::vector<std::string>& given) {
  for (const std::string& word : given) {
    if (word == "--") return false;
    if (word == "--help" || word == "-h") return true;
  }
  return false;
}

}  // namespace leasehold::cli
