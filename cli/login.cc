#include <leasehold/cli/login.h>
#include <leasehold/client/resp_client.h>

#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>
#include <utility>

namespace leasehold::cli {
namespace {

constexpr const char* kVariable = "LEASEHOLD_PASSWORD";

/// Of the command line, which one command reads.
struct Given {
  std::string user;
  std::string file;
};
Given& given() {
  static Given flags;
  return flags;
}

Result<std::string> read_file(const std::string& path) {
  std::ifstream file(path);
  std::string password;
  if (!file || !std::getline(file, password) || password.empty()) {
    return Error{
        ErrorCode::io,
        fmt::format("cannot read a password from '{}': its first line has to be it", path)};
  }
  return password;
}

Result<std::string> ask(const std::string& user) {
  const std::string question = fmt::format("Password of {}: ", user);
  // It has no echo. One thread runs.
  char* const typed = isatty(STDIN_FILENO) != 0 ? getpass(question.c_str()) : nullptr;
  if (typed == nullptr) {
    return Error{ErrorCode::invalid_argument,
                 fmt::format("the password of user {} is missing: name its file with "
                             "--password-file, or set {}",
                             user, kVariable)};
  }
  std::string password(typed);
  explicit_bzero(typed, password.size());
  return password;
}

}  // namespace

void add_login(Flags& flags) {
  flags.add({"--user", "NAME", "The user to be, of those that ACL SETUSER has made"}, given().user);
  flags.add({"--password-file", "FILE",
             "Read the password from FILE (default: LEASEHOLD_PASSWORD, or a prompt)"},
            given().file);
}

Result<void> log_in() {
  client::Login login;
  login.user = given().user;
  const char* const variable = std::getenv(kVariable);
  if (!given().file.empty()) {
    auto password = read_file(given().file);
    if (!password) return password.error();
    login.password = std::move(password).value();
  } else if (variable != nullptr && *variable != '\0') {
    login.password = variable;
  } else if (!login.user.empty()) {
    auto password = ask(login.user);
    if (!password) return password.error();
    login.password = std::move(password).value();
  } else {
    return {};
  }
  unsetenv(kVariable);
  client::RespClient::log_in_as(std::move(login));
  return {};
}

}  // namespace leasehold::cli
