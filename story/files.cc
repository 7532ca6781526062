#include <leasehold/story/files.h>

#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <system_error>

namespace leasehold::story {

Result<std::string> read_file(const std::string& name) {
  std::error_code failed;
  if (!std::filesystem::is_regular_file(name, failed)) {
    return Error{ErrorCode::not_found, name + " is not a file that can be read"};
  }
  if (std::filesystem::file_size(name, failed) > kFileBytesMax || failed) {
    return Error{ErrorCode::invalid_argument,
                 fmt::format("{} is larger than {} bytes", name, kFileBytesMax)};
  }
  std::ifstream in(name, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  if (!in) return Error{ErrorCode::io, name + " cannot be read"};
  return text.str();
}

Result<void> write_file(const std::string& name, const std::string& text) {
  std::ofstream out(name, std::ios::binary | std::ios::trunc);
  out << text;
  out.close();
  if (!out) return Error{ErrorCode::io, name + " cannot be written; is its folder there?"};
  return {};
}

}  // namespace leasehold::story
