// What leasehold cert makes: the files, their modes, and what OpenSSL itself says about them.
#include <leasehold/tests/base/temporary_folder.h>
#include <leasehold/tls/certificates.h>
#include <leasehold/tls/context.h>
#include <leasehold/tls/group_key.h>

#include <gtest/gtest.h>

#include <sys/stat.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <string>
#include <vector>

namespace leasehold::tls {
namespace {

namespace fs = std::filesystem;

unsigned mode_of(const std::string& path) {
  struct stat status {};
  EXPECT_EQ(::lstat(path.c_str(), &status), 0) << path;
  return status.st_mode & 07777U;
}

std::string content_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

struct Said {
  int status;
  std::string text;
};

/// Runs the program openssl, which is another reader of the same files.
Said openssl(const std::string& words) {
  std::FILE* pipe = ::popen(("openssl " + words + " 2>&1").c_str(), "r");
  if (pipe == nullptr) return {-1, {}};
  Said said{-1, {}};
  std::array<char, 4096> part{};
  while (const std::size_t size = std::fread(part.data(), 1, part.size(), pipe)) {
    said.text.append(part.data(), size);
  }
  said.status = ::pclose(pipe);
  return said;
}

class CertificatesTest : public ::testing::Test {
 protected:
  CertificatesTest() {
    const auto made = make_authority(dir(), "orders", false);
    EXPECT_TRUE(made) << made.error().message;
  }

  std::string dir() const { return folder_.path("ca"); }
  std::string file(const std::string& name) const { return dir() + "/" + name; }
  Result<MadeFiles> node(int days = kCertificateDays, bool replace = false) const {
    return make_certificate(dir(), NodeName{"orders", 1, "-"}, {"db1.example", "10.0.0.1", "::1"},
                            days, dir(), "node-1", replace);
  }
  Result<MadeFiles> user() const {
    return make_certificate(dir(), UserName{"orders", "ann"}, {}, kCertificateDays, dir(),
                            "client-ann", false);
  }
  Said verify(const std::string& words) const {
    return openssl("verify -x509_strict -CAfile " + file("ca.pem") + " " + words);
  }

  TemporaryFolder folder_;
};

/// The message of a result that has to be an error.
template <class T>
std::string refusal(const Result<T>& result) {
  EXPECT_FALSE(result);
  return result ? std::string() : result.error().message;
}

TEST_F(CertificatesTest, KeysAreTheOwnersAlone) {
  ASSERT_TRUE(node());
  EXPECT_EQ(mode_of(dir()), 0700U);
  for (const char* name : {"ca-key.pem", "node-1-key.pem"}) EXPECT_EQ(mode_of(file(name)), 0600U);
  for (const char* name : {"ca.pem", "crl.pem", "node-1.pem"}) {
    EXPECT_EQ(mode_of(file(name)), 0644U);
  }
  std::size_t files = 0;
  for (const auto& each : fs::directory_iterator(dir())) {
    EXPECT_NE(each.path().extension(), ".new");
    ++files;
  }
  EXPECT_EQ(files, 5U);
}

TEST_F(CertificatesTest, TheAuthorityOnlySignsCertificatesAndLists) {
  const std::string text = openssl("x509 -noout -text -in " + file("ca.pem")).text;
  for (const char* part : {"CA:TRUE, pathlen:0", "Certificate Sign, CRL Sign", "prime256v1",
                           "X509v3 Key Usage: critical"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
  }
}

TEST_F(CertificatesTest, ANodeServesAndAsks) {
  ASSERT_TRUE(node());
  const std::string text = openssl("x509 -noout -text -in " + file("node-1.pem")).text;
  for (const char* part :
       {"URI:leasehold://orders/node/1/-", "DNS:db1.example", "IP Address:10.0.0.1",
        "TLS Web Server Authentication, TLS Web Client Authentication", "CA:FALSE"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
  }
  for (const char* purpose : {"sslserver", "sslclient"}) {
    const Said said = verify(std::string("-purpose ") + purpose + " " + file("node-1.pem"));
    EXPECT_EQ(said.status, 0) << said.text;
  }
  EXPECT_EQ(verify("-verify_hostname db1.example " + file("node-1.pem")).status, 0);
  EXPECT_EQ(verify("-verify_ip ::1 " + file("node-1.pem")).status, 0);
  EXPECT_NE(verify("-verify_hostname db2.example " + file("node-1.pem")).status, 0);
}

TEST_F(CertificatesTest, AUserDoesNotServe) {
  ASSERT_TRUE(user());
  EXPECT_EQ(verify("-purpose sslclient " + file("client-ann.pem")).status, 0);
  EXPECT_NE(verify("-purpose sslserver " + file("client-ann.pem")).status, 0);
  EXPECT_EQ(read_certificate(file("client-ann.pem")).value().name, "leasehold://orders/user/ann");
}

TEST_F(CertificatesTest, AChainIsJudgedByItsAuthorityAndItsListAndNotByItsDates) {
  ASSERT_TRUE(node(-1));
  CertificateFiles files{file("node-1.pem"), "", file("ca.pem"), ""};
  EXPECT_TRUE(check_chain(files));
  files.revoked = file("crl.pem");
  EXPECT_TRUE(check_chain(files));
  ASSERT_TRUE(revoke_certificate(dir(), file("node-1.pem")));
  EXPECT_NE(refusal(check_chain(files)).find("certificate revoked"), std::string::npos);

  // Another authority of the same name.
  ASSERT_TRUE(make_authority(folder_.path("other"), "orders", false));
  const std::string other = folder_.path("other") + "/ca.pem";
  EXPECT_NE(refusal(check_chain({files.certificate, "", other, ""})).find("does not follow from"),
            std::string::npos);
  EXPECT_NE(refusal(check_chain({file("none.pem"), "", other, ""})).find("none.pem"),
            std::string::npos);
  EXPECT_NE(
      refusal(check_chain({files.certificate, "", file("node-1-key.pem"), ""})).find("key.pem"),
      std::string::npos);
}

TEST_F(CertificatesTest, AListEndsWhatItNames) {
  ASSERT_TRUE(node());
  ASSERT_TRUE(user());
  const auto checked = [this](const char* name) {
    return verify("-crl_check -CRLfile " + file("crl.pem") + " " + file(name)).status == 0;
  };
  EXPECT_TRUE(checked("node-1.pem"));
  ASSERT_TRUE(revoke_certificate(dir(), file("node-1.pem")));
  EXPECT_FALSE(checked("node-1.pem"));
  EXPECT_TRUE(checked("client-ann.pem"));
  // The list keeps what it had, and takes nothing twice.
  ASSERT_TRUE(revoke_certificate(dir(), file("client-ann.pem")));
  const std::string list = content_of(file("crl.pem"));
  ASSERT_TRUE(revoke_certificate(dir(), file("client-ann.pem")));
  EXPECT_EQ(content_of(file("crl.pem")), list);
  EXPECT_FALSE(checked("node-1.pem"));
  EXPECT_FALSE(checked("client-ann.pem"));
}

TEST_F(CertificatesTest, AnotherAuthoritysCertificateIsNotRevokedHere) {
  ASSERT_TRUE(make_authority(folder_.path("other"), "orders", false));
  const auto other = make_certificate(folder_.path("other"), UserName{"orders", "eve"}, {}, 1,
                                      folder_.path("other"), "client-eve", false);
  ASSERT_TRUE(other);
  EXPECT_NE(refusal(revoke_certificate(dir(), other.value().certificate)).find("was not made by"),
            std::string::npos);
  EXPECT_NE(verify(other.value().certificate).status, 0);
}

TEST_F(CertificatesTest, NothingIsOverwritten) {
  ASSERT_TRUE(node());
  const std::string key = content_of(file("node-1-key.pem"));
  EXPECT_NE(refusal(node()).find("--force"), std::string::npos);
  EXPECT_NE(refusal(make_authority(dir(), "orders", false)).find("--force"), std::string::npos);
  EXPECT_EQ(content_of(file("node-1-key.pem")), key);
  // The key may have been moved to its machine: no key of another certificate takes its place.
  fs::remove(file("node-1-key.pem"));
  fs::remove(file("ca-key.pem"));
  EXPECT_NE(refusal(make_authority(dir(), "orders", false)).find("crl.pem exists"),
            std::string::npos);
  fs::remove(file("crl.pem"));
  EXPECT_NE(refusal(make_authority(dir(), "orders", false)).find("ca.pem exists"),
            std::string::npos);
  EXPECT_FALSE(fs::exists(file("ca-key.pem")));
  EXPECT_FALSE(node());
  EXPECT_FALSE(fs::exists(file("node-1-key.pem")));
}

TEST_F(CertificatesTest, AKeyIsNotMadeForACertificateThatIsThere) {
  ASSERT_TRUE(node());
  fs::remove(file("node-1-key.pem"));
  EXPECT_NE(refusal(node()).find("node-1.pem exists"), std::string::npos);
  EXPECT_FALSE(fs::exists(file("node-1-key.pem")));
  ASSERT_TRUE(node(kCertificateDays, true));
  EXPECT_TRUE(Context::dial_peers(CertificateFiles{file("node-1.pem"), file("node-1-key.pem"),
                                                   file("ca.pem"), file("crl.pem")}));
}

TEST_F(CertificatesTest, SerialsDiffer) {
  std::set<std::string> serials;
  for (int i = 0; i < 20; ++i) {
    ASSERT_TRUE(node(kCertificateDays, true));
    const auto facts = read_certificate(file("node-1.pem"));
    EXPECT_EQ(facts.value().serial.size(), 32U);
    serials.insert(facts.value().serial);
  }
  EXPECT_EQ(serials.size(), 20U);
}

TEST_F(CertificatesTest, TheLifeIsShown) {
  ASSERT_TRUE(node());
  // Full days, and a second may have passed.
  EXPECT_NEAR(static_cast<double>(read_certificate(file("node-1.pem")).value().days_left),
              kCertificateDays, 1);
  ASSERT_TRUE(node(-2, true));
  EXPECT_LT(read_certificate(file("node-1.pem")).value().days_left, 0);
  EXPECT_NE(verify(file("node-1.pem")).text.find("expired"), std::string::npos);
  EXPECT_EQ(read_certificate(file("ca.pem")).value().name, "authority of orders");
}

TEST_F(CertificatesTest, RefusalsSayWhatToDo) {
  EXPECT_NE(refusal(authority_cluster(folder_.path("none"))).find("leasehold cert init"),
            std::string::npos);
  EXPECT_NE(refusal(make_authority(folder_.path("x"), "", false)).find("--cluster"),
            std::string::npos);
  EXPECT_NE(
      refusal(make_certificate(dir(), NodeName{"orders", 0, "-"}, {"h"}, 1, dir(), "n", false))
          .find("node id 0"),
      std::string::npos);
  for (const char* host : {"", "a b", "h:1/2", "x,DNS:evil", "h\n"}) {
    EXPECT_NE(refusal(make_certificate(dir(), NodeName{"orders", 2, "-"}, {host}, 1, dir(),
                                       "node-2", false))
                  .find("is not a host"),
              std::string::npos)
        << host;
  }
  EXPECT_NE(refusal(node(kDaysMax + 1)).find("1 to 36500 days"), std::string::npos);
  EXPECT_NE(refusal(read_certificate(file("ca-key.pem"))).find("is not a certificate"),
            std::string::npos);
  // The key of another authority.
  ASSERT_TRUE(make_authority(folder_.path("other"), "orders", false));
  fs::copy_file(folder_.path("other/ca-key.pem"), file("ca-key.pem"),
                fs::copy_options::overwrite_existing);
  EXPECT_NE(refusal(node()).find("is not the key of ca.pem"), std::string::npos);
}

TEST_F(CertificatesTest, AGroupKeyIsARandomLineOfItsOwnersFile) {
  ASSERT_TRUE(make_group_key(file("group.key"), false));
  EXPECT_EQ(mode_of(file("group.key")), 0600U);
  const std::string text = content_of(file("group.key"));
  EXPECT_EQ(text.size(), 2 * kGroupKeyBytes + 1);
  const auto keys = read_group_keys(file("group.key"));
  ASSERT_TRUE(keys) << keys.error().message;
  EXPECT_EQ(keys.value().size(), 1U);
  EXPECT_NE(refusal(make_group_key(file("group.key"), false)).find("--force"), std::string::npos);
  EXPECT_EQ(content_of(file("group.key")), text);
  ASSERT_TRUE(make_group_key(file("group.key"), true));
  EXPECT_NE(content_of(file("group.key")), text);
}

}  // namespace
}  // namespace leasehold::tls
