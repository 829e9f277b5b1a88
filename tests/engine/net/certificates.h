// An authority that makes certificates for the nodes of a test. Thread: one.
#pragma once

#include <gtest/gtest.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <cstdio>
#include <memory>
#include <string>

#include "engine/net/tcp/tcp_transport.h"

namespace kvsyncfs {

class Authority {
 public:
  /// Its files come into `folder`.
  Authority(std::string folder, const std::string& name)
      : folder_(std::move(folder)), name_(name), key_(make_key()), certificate_(make(name, key_)) {
    X509_EXTENSION* may_sign =
        X509V3_EXT_conf_nid(nullptr, nullptr, NID_basic_constraints, "critical,CA:TRUE");
    EXPECT_EQ(X509_add_ext(certificate_, may_sign, -1), 1);
    X509_EXTENSION_free(may_sign);
    sign(certificate_, 3600);
    write_certificate(ca_file(), certificate_);
  }
  ~Authority() {
    EVP_PKEY_free(key_);
    X509_free(certificate_);
  }
  Authority(const Authority&) = delete;
  Authority& operator=(const Authority&) = delete;

  std::string ca_file() const { return folder_ + "/" + name_ + ".ca.pem"; }

  /// For a node; ends in `seconds`, which may have passed already.
  TlsFiles issue(const std::string& node, long seconds = 3600) {
    EVP_PKEY* key = make_key();
    X509* certificate = make(node, key);
    sign(certificate, seconds);
    const TlsFiles files{folder_ + "/" + node + ".pem", folder_ + "/" + node + ".key", ca_file()};
    write_certificate(files.certificate_file, certificate);
    std::FILE* file = std::fopen(files.key_file.c_str(), "w");
    EXPECT_EQ(PEM_write_PrivateKey(file, key, nullptr, nullptr, 0, nullptr, nullptr), 1);
    std::fclose(file);
    X509_free(certificate);
    EVP_PKEY_free(key);
    return files;
  }

 private:
  static EVP_PKEY* make_key() { return EVP_EC_gen("P-256"); }
  static X509* make(const std::string& name, EVP_PKEY* key) {
    X509* certificate = X509_new();
    X509_set_version(certificate, X509_VERSION_3);
    X509_set_pubkey(certificate, key);
    X509_NAME_add_entry_by_txt(X509_get_subject_name(certificate), "CN", MBSTRING_ASC,
                               reinterpret_cast<const unsigned char*>(name.c_str()), -1, -1, 0);
    return certificate;
  }
  void sign(X509* certificate, long seconds) {
    ASN1_INTEGER_set(X509_get_serialNumber(certificate), ++serial_);
    X509_gmtime_adj(X509_getm_notBefore(certificate), -7200);
    X509_gmtime_adj(X509_getm_notAfter(certificate), seconds);
    X509_set_issuer_name(certificate, X509_get_subject_name(certificate_));
    EXPECT_GT(X509_sign(certificate, key_, EVP_sha256()), 0);
  }
  static void write_certificate(const std::string& path, X509* certificate) {
    std::FILE* file = std::fopen(path.c_str(), "w");
    EXPECT_EQ(PEM_write_X509(file, certificate), 1);
    std::fclose(file);
  }

  const std::string folder_, name_;
  long serial_ = 0;
  EVP_PKEY* key_;
  X509* certificate_;
};

}  // namespace kvsyncfs
