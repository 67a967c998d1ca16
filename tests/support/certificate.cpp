#include "tests/support/certificate.hpp"

#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <cstdio>
#include <memory>
#include <stdexcept>

namespace fixpoint::test {
namespace {

template <class T, void (*Free)(T*)>
struct FreeWith {
  void operator()(T* object) const { Free(object); }
};
using Key = std::unique_ptr<EVP_PKEY, FreeWith<EVP_PKEY, EVP_PKEY_free>>;
using Certificate = std::unique_ptr<X509, FreeWith<X509, X509_free>>;
using Extension = std::unique_ptr<X509_EXTENSION, FreeWith<X509_EXTENSION, X509_EXTENSION_free>>;

void check(bool ok, const char* what) {
  if (!ok) throw std::runtime_error(std::string("making a certificate failed: ") + what);
}

void add_extension(X509* certificate, int nid, const std::string& value) {
  const Extension extension(X509V3_EXT_conf_nid(nullptr, nullptr, nid, value.c_str()));
  check(extension && X509_add_ext(certificate, extension.get(), -1) == 1, "extension");
}

template <class Write>
void write_file(const std::string& path, Write write) {
  std::FILE* file = std::fopen(path.c_str(), "w");
  check(file != nullptr, path.c_str());
  const bool ok = write(file) == 1;
  check(std::fclose(file) == 0 && ok, path.c_str());
}

}  // namespace

CertificateFiles make_certificate(const std::string& folder, const std::string& name,
                                  const std::string& host, int valid_days) {
  const Key key(EVP_EC_gen("P-256"));
  check(key != nullptr, "key");
  const Certificate certificate(X509_new());
  check(certificate != nullptr, "certificate");
  X509* x = certificate.get();
  static long serial = 0;
  constexpr long kDay = 24 * 3600;
  check(X509_set_version(x, 2) == 1, "version");
  ASN1_INTEGER_set(X509_get_serialNumber(x), ++serial);
  X509_gmtime_adj(X509_getm_notBefore(x), -30 * kDay);
  X509_gmtime_adj(X509_getm_notAfter(x), valid_days * kDay);
  check(X509_set_pubkey(x, key.get()) == 1, "public key");
  X509_NAME* subject = X509_get_subject_name(x);
  const auto* text = reinterpret_cast<const unsigned char*>(host.c_str());
  check(X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_ASC, text, -1, -1, 0) == 1, "name");
  check(X509_set_issuer_name(x, subject) == 1, "issuer");
  add_extension(x, NID_basic_constraints, "critical,CA:TRUE");
  add_extension(x, NID_subject_alt_name, "DNS:" + host);
  check(X509_sign(x, key.get(), EVP_sha256()) > 0, "signature");
  const CertificateFiles files{folder + "/" + name + ".crt", folder + "/" + name + ".key"};
  write_file(files.certificate, [x](std::FILE* file) { return PEM_write_X509(file, x); });
  write_file(files.key, [&key](std::FILE* file) {
    return PEM_write_PrivateKey(file, key.get(), nullptr, nullptr, 0, nullptr, nullptr);
  });
  return files;
}

}  // namespace fixpoint::test
