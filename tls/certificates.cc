#include <leasehold/tls/certificates.h>

#include <leasehold/tls/group_key.h>
#include <leasehold/tls/openssl.h>
#include <leasehold/tls/private_file.h>

#include <fmt/format.h>

#include <openssl/bn.h>
#include <openssl/crypto.h>
#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <optional>
#include <system_error>
#include <utility>
#include <variant>

namespace leasehold::tls {

namespace {

using KeyHandle = std::unique_ptr<EVP_PKEY, FreeBy<EVP_PKEY_free>>;
using BioHandle = std::unique_ptr<BIO, FreeBy<BIO_free_all>>;
using ListHandle = std::unique_ptr<X509_CRL, FreeBy<X509_CRL_free>>;
using NumberHandle = std::unique_ptr<BIGNUM, FreeBy<BN_free>>;
using ExtensionHandle = std::unique_ptr<X509_EXTENSION, FreeBy<X509_EXTENSION_free>>;
using TextHandle = std::unique_ptr<ASN1_TIME, FreeBy<ASN1_TIME_free>>;

constexpr unsigned kPrivateMode = 0600;
constexpr unsigned kPublicMode = 0644;
constexpr int kSerialBits = 127;  // positive in 16 bytes
constexpr long kSecondsPerDay = 86400;
/// Clocks differ: a fresh certificate is good on a machine that is a little behind.
constexpr long kBegunAgo = 3600;

struct Authority {
  std::string cluster;
  CertificateHandle certificate;
  KeyHandle key;
};

Error failed(const char* doing) {
  return Error{ErrorCode::io, fmt::format("{}: {}", doing, openssl_problem())};
}

KeyHandle fresh_key() {
  return KeyHandle(EVP_EC_gen("P-256"));
}

std::string text_of(BIO* bio) {
  char* bytes = nullptr;
  const long size = BIO_get_mem_data(bio, &bytes);
  return {bytes, static_cast<std::size_t>(size)};
}

std::string pem_of(X509* certificate) {
  const BioHandle bio(BIO_new(BIO_s_mem()));
  PEM_write_bio_X509(bio.get(), certificate);
  return text_of(bio.get());
}

std::string pem_of(X509_CRL* list) {
  const BioHandle bio(BIO_new(BIO_s_mem()));
  PEM_write_bio_X509_CRL(bio.get(), list);
  return text_of(bio.get());
}

std::string pem_of(EVP_PKEY* key) {
  const BioHandle bio(BIO_new(BIO_s_secmem()));
  PEM_write_bio_PrivateKey(bio.get(), key, nullptr, nullptr, 0, nullptr, nullptr);
  return text_of(bio.get());
}

/// A file, for OpenSSL to read from.
Result<BioHandle> open_file(const std::string& path) {
  errno = 0;
  BioHandle bio(BIO_new_file(path.c_str(), "r"));
  if (bio) return bio;
  ERR_clear_error();
  return Error{ErrorCode::io,
               fmt::format("cannot read {}: {}", path, std::generic_category().message(errno))};
}

Result<CertificateHandle> load_certificate(const std::string& path) {
  auto file = open_file(path);
  if (!file.ok()) return file.error();
  CertificateHandle certificate(PEM_read_bio_X509(file.value().get(), nullptr, nullptr, nullptr));
  if (certificate) return certificate;
  ERR_clear_error();
  return Error{ErrorCode::invalid_argument, fmt::format("{} is not a certificate in PEM", path)};
}

bool set_serial(X509* certificate) {
  const NumberHandle number(BN_new());
  return number && BN_rand(number.get(), kSerialBits, BN_RAND_TOP_ONE, BN_RAND_BOTTOM_ANY) == 1 &&
         BN_to_ASN1_INTEGER(number.get(), X509_get_serialNumber(certificate)) != nullptr;
}

bool set_life(X509* certificate, int days) {
  return X509_gmtime_adj(X509_getm_notBefore(certificate), -kBegunAgo) != nullptr &&
         X509_time_adj_ex(X509_getm_notAfter(certificate), days, 0, nullptr) != nullptr;
}

bool add_text(X509_NAME* name, const char* field, const std::string& text) {
  // The subject is for people; a name of more than 64 bytes is cut there, and whole in the URI.
  const std::string shown = text.substr(0, 64);
  return X509_NAME_add_entry_by_txt(name, field, MBSTRING_UTF8,
                                    reinterpret_cast<const unsigned char*>(shown.data()),
                                    static_cast<int>(shown.size()), -1, 0) == 1;
}

bool add_extension(X509* certificate, X509* issuer, int kind, const char* value) {
  X509V3_CTX context;
  X509V3_set_ctx_nodb(&context);
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  const ExtensionHandle extension(X509V3_EXT_conf_nid(nullptr, &context, kind, value));
  return extension && X509_add_ext(certificate, extension.get(), -1) == 1;
}

/// The names by value, not as text: a host may hold any byte that OpenSSL's text would take for its
/// own.
bool add_names(X509* certificate, const std::string& uri, const std::vector<std::string>& hosts) {
  using NamesHandle = std::unique_ptr<GENERAL_NAMES, FreeBy<GENERAL_NAMES_free>>;
  const NamesHandle names(GENERAL_NAMES_new());
  const auto push = [&names](int kind, ASN1_STRING* text) {
    GENERAL_NAME* name = GENERAL_NAME_new();
    if (name == nullptr || text == nullptr) return false;
    GENERAL_NAME_set0_value(name, kind, text);
    return sk_GENERAL_NAME_push(names.get(), name) > 0;
  };
  const auto ia5 = [](const std::string& bytes) -> ASN1_STRING* {
    ASN1_STRING* text = ASN1_IA5STRING_new();
    if (text != nullptr) ASN1_STRING_set(text, bytes.data(), static_cast<int>(bytes.size()));
    return text;
  };
  if (!names || !push(GEN_URI, ia5(uri))) return false;
  for (const std::string& host : hosts) {
    ASN1_OCTET_STRING* address = a2i_IPADDRESS(host.c_str());
    ERR_clear_error();
    if (!(address != nullptr ? push(GEN_IPADD, address) : push(GEN_DNS, ia5(host)))) return false;
  }
  return X509_add1_ext_i2d(certificate, NID_subject_alt_name, names.get(), 0, 0) == 1;
}

Result<void> check_host(const std::string& host) {
  if (!host.empty() && host.size() <= 253 &&
      host.find_first_not_of(
          "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._:*") ==
          std::string::npos) {
    return {};
  }
  return Error{ErrorCode::invalid_argument,
               fmt::format("'{}' is not a host: give a name or an address, without a port", host)};
}

/// The cluster that an authority's certificate names.
std::optional<std::string> cluster_of(X509* certificate) {
  std::array<char, 512> text{};
  const int size = X509_NAME_get_text_by_NID(X509_get_subject_name(certificate),
                                             NID_organizationName, text.data(), text.size());
  if (size <= 0 || X509_check_ca(certificate) != 1) return std::nullopt;
  return std::string(text.data(), static_cast<std::size_t>(size));
}

Result<Authority> load_authority(const std::string& directory) {
  Authority authority;
  auto certificate = load_certificate(directory + "/ca.pem");
  if (!certificate.ok()) {
    return Error{
        certificate.error().code,
        fmt::format("{}: make an authority with leasehold cert init, or name its folder by --dir",
                    certificate.error().message)};
  }
  authority.certificate = std::move(certificate).value();
  const std::string path = directory + "/ca-key.pem";
  auto file = open_file(path);
  if (!file.ok()) return file.error();
  authority.key.reset(PEM_read_bio_PrivateKey(file.value().get(), nullptr, nullptr, nullptr));
  if (!authority.key ||
      X509_check_private_key(authority.certificate.get(), authority.key.get()) != 1) {
    ERR_clear_error();
    return Error{ErrorCode::invalid_argument, fmt::format("{} is not the key of ca.pem", path)};
  }
  const auto cluster = cluster_of(authority.certificate.get());
  if (!cluster) {
    return Error{ErrorCode::invalid_argument,
                 fmt::format("{}/ca.pem is not an authority of leasehold cert init", directory)};
  }
  authority.cluster = *cluster;
  return authority;
}

/// While one authority replaces another, both have the same name: the key tells whose list it is.
bool name_key_of_issuer(X509_CRL* list, X509* issuer) {
  X509V3_CTX context;
  X509V3_set_ctx_nodb(&context);
  X509V3_set_ctx(&context, issuer, nullptr, nullptr, list, 0);
  const ExtensionHandle extension(
      X509V3_EXT_conf_nid(nullptr, &context, NID_authority_key_identifier, "keyid"));
  return extension && X509_CRL_add_ext(list, extension.get(), -1) == 1;
}

Result<void> write_list(const std::string& directory, const Authority& authority, ListHandle list,
                        bool replace) {
  const TextHandle now(X509_gmtime_adj(nullptr, -kBegunAgo));
  const TextHandle next(X509_gmtime_adj(nullptr, kSecondsPerDay * kAuthorityDays));
  const bool made = now && next && X509_CRL_set_version(list.get(), 1) == 1 &&
                    X509_CRL_set_issuer_name(
                        list.get(), X509_get_subject_name(authority.certificate.get())) == 1 &&
                    X509_CRL_set1_lastUpdate(list.get(), now.get()) == 1 &&
                    X509_CRL_set1_nextUpdate(list.get(), next.get()) == 1 &&
                    name_key_of_issuer(list.get(), authority.certificate.get()) &&
                    X509_CRL_sort(list.get()) == 1 &&
                    X509_CRL_sign(list.get(), authority.key.get(), EVP_sha256()) > 0;
  if (!made) return failed("cannot make the list of revoked certificates");
  return write_file(directory + "/crl.pem", pem_of(list.get()), kPublicMode, replace);
}

/// Before the first of several files is written: a key without its certificate would be worse than
/// neither.
Result<void> check_free(const std::vector<std::string>& paths, bool replace) {
  for (const std::string& path : paths) {
    if (!replace && ::access(path.c_str(), F_OK) == 0) {
      return Error{ErrorCode::invalid_argument,
                   fmt::format("{} exists: choose another place, or --force to replace it", path)};
    }
  }
  return {};
}

Result<MadeFiles> write_pair(const std::string& stem, X509* certificate, EVP_PKEY* key,
                             bool replace) {
  MadeFiles made{stem + ".pem", stem + "-key.pem"};
  if (auto free = check_free({made.certificate, made.key}, replace); !free.ok()) {
    return free.error();
  }
  std::string secret = pem_of(key);
  Result<void> written = write_file(made.key, secret, kPrivateMode, replace);
  OPENSSL_cleanse(secret.data(), secret.size());
  if (written.ok())
    written = write_file(made.certificate, pem_of(certificate), kPublicMode, replace);
  if (!written.ok()) return written.error();
  return made;
}

/// A certificate with its key, serial, life and subject, not signed yet.
CertificateHandle begin_certificate(EVP_PKEY* key, const std::string& cluster,
                                    const std::string& subject, int days) {
  CertificateHandle certificate(X509_new());
  if (!certificate || key == nullptr) return nullptr;
  X509_NAME* name = X509_get_subject_name(certificate.get());
  const bool made = X509_set_version(certificate.get(), 2) == 1 && set_serial(certificate.get()) &&
                    set_life(certificate.get(), days) &&
                    X509_set_pubkey(certificate.get(), key) == 1 && add_text(name, "O", cluster) &&
                    add_text(name, "CN", subject);
  return made ? std::move(certificate) : nullptr;
}

std::string time_text(const ASN1_TIME* time) {
  ::tm parts{};
  if (ASN1_TIME_to_tm(time, &parts) != 1) return "unknown";
  return fmt::format("{:04}-{:02}-{:02} {:02}:{:02}:{:02}", parts.tm_year + 1900, parts.tm_mon + 1,
                     parts.tm_mday, parts.tm_hour, parts.tm_min, parts.tm_sec);
}

}  // namespace

Result<MadeFiles> make_authority(const std::string& directory, const std::string& cluster,
                                 bool replace) {
  if (cluster.empty() || cluster.size() > 64) {
    return Error{ErrorCode::invalid_argument,
                 "the name of the cluster has 1 to 64 bytes: give that of --cluster"};
  }
  if (::mkdir(directory.c_str(), 0700) != 0 && errno != EEXIST) {
    return Error{ErrorCode::io, fmt::format("cannot make {}: {}", directory,
                                            std::generic_category().message(errno))};
  }
  if (auto free = check_free({directory + "/crl.pem"}, replace); !free.ok()) return free.error();
  Authority authority;
  authority.cluster = cluster;
  authority.key = fresh_key();
  authority.certificate =
      begin_certificate(authority.key.get(), cluster, "authority", kAuthorityDays);
  X509* certificate = authority.certificate.get();
  const bool made =
      certificate != nullptr &&
      X509_set_issuer_name(certificate, X509_get_subject_name(certificate)) == 1 &&
      add_extension(certificate, certificate, NID_basic_constraints,
                    "critical,CA:TRUE,pathlen:0") &&
      add_extension(certificate, certificate, NID_key_usage, "critical,keyCertSign,cRLSign") &&
      add_extension(certificate, certificate, NID_subject_key_identifier, "hash") &&
      X509_sign(certificate, authority.key.get(), EVP_sha256()) > 0;
  if (!made) return failed("cannot make the authority");
  auto files = write_pair(directory + "/ca", certificate, authority.key.get(), replace);
  if (!files.ok()) return files;
  if (auto list = write_list(directory, authority, ListHandle(X509_CRL_new()), replace);
      !list.ok()) {
    return list.error();
  }
  return files;
}

Result<std::string> authority_cluster(const std::string& directory) {
  auto authority = load_authority(directory);
  if (!authority.ok()) return authority.error();
  return authority.value().cluster;
}

Result<MadeFiles> make_certificate(const std::string& directory, const CertificateName& name,
                                   const std::vector<std::string>& hosts, int days,
                                   const std::string& out, const std::string& stem, bool replace) {
  auto loaded = load_authority(directory);
  if (!loaded.ok()) return loaded.error();
  const Authority& authority = loaded.value();
  if (days > kDaysMax || days < -kDaysMax) {
    return Error{ErrorCode::invalid_argument,
                 fmt::format("a certificate lives for 1 to {} days", kDaysMax)};
  }
  for (const std::string& host : hosts) {
    if (auto valid = check_host(host); !valid.ok()) return valid.error();
  }
  if (const auto valid = validate_name(name); !valid.ok()) return valid.error();
  const bool of_node = std::holds_alternative<NodeName>(name);
  const KeyHandle key = fresh_key();
  const CertificateHandle made = begin_certificate(key.get(), authority.cluster, stem, days);
  X509* certificate = made.get();
  X509* issuer = authority.certificate.get();
  const bool is_signed =
      certificate != nullptr &&
      X509_set_issuer_name(certificate, X509_get_subject_name(issuer)) == 1 &&
      add_extension(certificate, issuer, NID_basic_constraints, "critical,CA:FALSE") &&
      add_extension(certificate, issuer, NID_key_usage, "critical,digitalSignature") &&
      add_extension(certificate, issuer, NID_ext_key_usage,
                    of_node ? "serverAuth,clientAuth" : "clientAuth") &&
      add_extension(certificate, issuer, NID_subject_key_identifier, "hash") &&
      add_extension(certificate, issuer, NID_authority_key_identifier, "keyid") &&
      add_names(certificate, to_uri(name), hosts) &&
      X509_sign(certificate, authority.key.get(), EVP_sha256()) > 0;
  if (!is_signed) return failed("cannot make the certificate");
  return write_pair(fmt::format("{}/{}", out, stem), certificate, key.get(), replace);
}

Result<void> revoke_certificate(const std::string& directory, const std::string& path) {
  auto authority = load_authority(directory);
  if (!authority.ok()) return authority.error();
  auto certificate = load_certificate(path);
  if (!certificate.ok()) return certificate.error();
  if (X509_verify(certificate.value().get(),
                  X509_get0_pubkey(authority.value().certificate.get())) != 1) {
    ERR_clear_error();
    return Error{ErrorCode::invalid_argument,
                 fmt::format("{} was not made by the authority in {}", path, directory)};
  }
  const std::string list_path = directory + "/crl.pem";
  auto file = open_file(list_path);
  if (!file.ok()) return file.error();
  ListHandle old(PEM_read_bio_X509_CRL(file.value().get(), nullptr, nullptr, nullptr));
  if (!old) {
    ERR_clear_error();
    return Error{ErrorCode::invalid_argument,
                 fmt::format("{} is not a list of revoked certificates", list_path)};
  }
  X509_REVOKED* found = nullptr;
  if (X509_CRL_get0_by_cert(old.get(), &found, certificate.value().get()) == 1) return {};
  // A list that was read keeps the bytes that were signed: what it holds goes into a new one.
  ListHandle list(X509_CRL_new());
  const auto add = [&list](const ASN1_INTEGER* serial, const ASN1_TIME* when) {
    X509_REVOKED* revoked = X509_REVOKED_new();
    return revoked != nullptr &&
           X509_REVOKED_set_serialNumber(revoked, const_cast<ASN1_INTEGER*>(serial)) == 1 &&
           X509_REVOKED_set_revocationDate(revoked, const_cast<ASN1_TIME*>(when)) == 1 &&
           X509_CRL_add0_revoked(list.get(), revoked) == 1;
  };
  STACK_OF(X509_REVOKED)* before = X509_CRL_get_REVOKED(old.get());
  for (int i = 0; i < sk_X509_REVOKED_num(before); ++i) {
    const X509_REVOKED* one = sk_X509_REVOKED_value(before, i);
    if (!add(X509_REVOKED_get0_serialNumber(one), X509_REVOKED_get0_revocationDate(one))) {
      return failed("cannot revoke the certificate");
    }
  }
  const TextHandle now(X509_gmtime_adj(nullptr, 0));
  if (!add(X509_get0_serialNumber(certificate.value().get()), now.get())) {
    return failed("cannot revoke the certificate");
  }
  return write_list(directory, authority.value(), std::move(list), true);
}

Result<CertificateFacts> read_certificate(const std::string& path) {
  auto loaded = load_certificate(path);
  if (!loaded.ok()) return loaded.error();
  X509* certificate = loaded.value().get();
  CertificateFacts facts;
  if (const auto cluster = cluster_of(certificate)) {
    facts.name = fmt::format("authority of {}", *cluster);
  } else if (const auto name = name_in(certificate)) {
    facts.name = to_uri(*name);
  }
  facts.serial = serial_text(certificate);
  facts.not_before = time_text(X509_get0_notBefore(certificate));
  facts.not_after = time_text(X509_get0_notAfter(certificate));
  int days = 0;
  int seconds = 0;
  if (ASN1_TIME_diff(&days, &seconds, nullptr, X509_get0_notAfter(certificate)) == 1) {
    facts.days_left = seconds < 0 ? days - 1 : days;
  }
  return facts;
}

Result<void> make_group_key(const std::string& path, bool replace) {
  std::array<unsigned char, kGroupKeyBytes> key{};
  if (RAND_priv_bytes(key.data(), static_cast<int>(key.size())) != 1)
    return failed("no random bytes");
  std::string text;
  text.reserve(2 * kGroupKeyBytes + 1);
  for (const unsigned char byte : key) text += fmt::format("{:02x}", byte);
  text += '\n';
  const Result<void> written = write_file(path, text, kPrivateMode, replace);
  OPENSSL_cleanse(text.data(), text.size());
  OPENSSL_cleanse(key.data(), key.size());
  return written;
}

}  // namespace leasehold::tls
