#pragma once
// Owners of OpenSSL's objects, and its errors.

#include <memory>
#include <string>

#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

namespace msa::tls {

template <auto Function>
struct Deleter {
  template <class T>
  void operator()(T* object) const noexcept {
    Function(object);
  }
};
using KeyPtr = std::unique_ptr<EVP_PKEY, Deleter<EVP_PKEY_free>>;
using CertificatePtr = std::unique_ptr<X509, Deleter<X509_free>>;
using RequestPtr = std::unique_ptr<X509_REQ, Deleter<X509_REQ_free>>;
using BioPtr = std::unique_ptr<BIO, Deleter<BIO_free_all>>;
using ContextPtr = std::unique_ptr<SSL_CTX, Deleter<SSL_CTX_free>>;
using SslPtr = std::unique_ptr<SSL, Deleter<SSL_free>>;

// The thread's first queued error; empties the queue.
std::string OpenSslText();

KeyPtr ParseKey(const std::string& pem);                  // null: no key
CertificatePtr ParseCertificate(const std::string& pem);  // null: no certificate
std::string KeyPem(EVP_PKEY* key);
std::string CertificatePem(X509* certificate);

// The one URI of a certificate's subjectAltName; empty: none, or several.
std::string UriOf(X509* certificate);

}  // namespace msa::tls
