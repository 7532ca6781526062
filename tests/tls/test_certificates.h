// Certificates for tests, made with the openssl program.
#pragma once

#include <leasehold/base/assert.h>
#include <leasehold/tls/context.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

namespace leasehold::tls {

/// In a folder of its own, which ends with it.
class TestAuthority {
 public:
  struct Certificate {
    std::string certificate;
    std::string key;
  };

  TestAuthority() {
    std::string text = std::filesystem::temp_directory_path() / "leasehold-tls-XXXXXX";
    LEASEHOLD_ASSERT(mkdtemp(text.data()) != nullptr);
    folder_ = text;
    openssl("req -x509 " + kNewKey + " -days 3650 -subj /CN=test -keyout ca.key -out ca.pem");
    write("ca.cnf",
          "[ca]\ndefault_ca=a\n[a]\ndatabase=index\ndefault_md=sha256\ndefault_crl_days=30\n");
    write("index", "");
  }
  ~TestAuthority() {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }
  TestAuthority(const TestAuthority&) = delete;
  TestAuthority& operator=(const TestAuthority&) = delete;

  /// `names`: as openssl writes them, "DNS:localhost,URI:..."; empty: none. `days` below 0: it has
  /// ended.
  Certificate certify(const std::string& name, const std::string& names, int days = 30) {
    write(name + ".ext", "basicConstraints=CA:FALSE\nextendedKeyUsage=serverAuth,clientAuth\n" +
                             (names.empty() ? "" : "subjectAltName=" + names + "\n"));
    openssl("req -new " + kNewKey + " -subj /CN=" + name + " -keyout " + name + ".key -out " +
            name + ".csr");
    openssl("x509 -req -in " + name + ".csr -CA ca.pem -CAkey ca.key -set_serial " +
            std::to_string(++serial_) + " -days " + std::to_string(days) + " -extfile " + name +
            ".ext -out " + name + ".pem");
    std::filesystem::permissions(path(name + ".key"), std::filesystem::perms::owner_read |
                                                          std::filesystem::perms::owner_write);
    return {path(name + ".pem"), path(name + ".key")};
  }
  /// Revokes it, and returns the list.
  std::string revoke(const std::string& name) {
    openssl("ca -config ca.cnf -cert ca.pem -keyfile ca.key -revoke " + name + ".pem");
    openssl("ca -config ca.cnf -cert ca.pem -keyfile ca.key -gencrl -out crl.pem");
    return path("crl.pem");
  }

  std::string certificate() const { return path("ca.pem"); }
  std::string path(const std::string& name) const { return folder_ / name; }
  CertificateFiles files(const Certificate& own, const std::string& revoked = {}) const {
    return {own.certificate, own.key, certificate(), revoked};
  }

 private:
  inline static const std::string kNewKey = "-newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes";

  void write(const std::string& name, const std::string& text) const {
    std::ofstream(path(name)) << text;
  }
  void openssl(const std::string& words) const {
    const std::string line = "cd " + folder_.string() + " && openssl " + words + " 2>openssl.log";
    LEASEHOLD_ASSERT(std::system(line.c_str()) == 0);
  }

  std::filesystem::path folder_;
  int serial_ = 1;
};

}  // namespace leasehold::tls
