#include <leasehold/base/assert.h>
#include <leasehold/server/admin/status_page.h>
#include <leasehold/tls/digest.h>

#include <fmt/format.h>

#include <cstdint>
#include <string_view>

namespace leasehold::server {
namespace {

std::string base64(std::string_view bytes) {
  constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    std::uint32_t word = 0;
    for (std::size_t k = i; k < i + 3; ++k) {
      word = word << 8U | (k < bytes.size() ? static_cast<unsigned char>(bytes[k]) : 0U);
    }
    for (std::size_t k = 0; k < 4; ++k) {
      const std::uint32_t digit = word >> (18 - 6 * k) & 63U;
      out.push_back(i + k > bytes.size() ? '=' : kDigits[digit]);
    }
  }
  return out;
}

/// Of what stands in the one element with this tag.
std::string hash_of(std::string_view tag) {
  const std::string_view page = kStatusPage;
  const std::string open = fmt::format("<{}>", tag);
  const std::size_t begin = page.find(open) + open.size();
  const std::size_t end = page.find(fmt::format("</{}>", tag), begin);
  LEASEHOLD_ASSERT(begin < end && end < page.size());
  return "'sha256-" + base64(tls::sha256(page.substr(begin, end - begin))) + "'";
}

}  // namespace

std::string page_policy(const std::map<raft::NodeId, std::string>& addresses) {
  std::string sources = "'self'";
  for (const auto& [node, address] : addresses) {
    sources += fmt::format(" http://{0} https://{0}", address);
  }
  return fmt::format(
      "default-src 'none'; script-src {}; style-src {}; connect-src {}; base-uri 'none'; "
      "form-action 'none'; frame-ancestors 'none'",
      hash_of("script"), hash_of("style"), sources);
}

}  // namespace leasehold::server
