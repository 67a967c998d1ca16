// Certificates for TLS tests.
#pragma once

#include <string>

namespace fixpoint::test {

struct CertificateFiles {
  std::string certificate;  // PEM, signed by itself: also usable as a CA file
  std::string key;          // PEM
};

// Writes NAME.crt and NAME.key into `folder`. `host` becomes the subject's alternative name (DNS).
// `valid_days` may be negative: expired. Throws std::runtime_error.
CertificateFiles make_certificate(const std::string& folder, const std::string& name,
                                  const std::string& host, int valid_days = 1);

}  // namespace fixpoint::test
