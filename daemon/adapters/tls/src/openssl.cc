#include "openssl.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

namespace msa::tls {
namespace {

BioPtr Memory(const std::string& text) {
  return BioPtr(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
}

std::string TextOf(BIO* bio) {
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio, &data);
  return size > 0 ? std::string(data, static_cast<std::size_t>(size)) : std::string();
}

// PEM may be encrypted: never ask a terminal for the pass phrase.
int NoPassPhrase(char*, int, int, void*) noexcept { return -1; }

struct NamesDelete {
  void operator()(GENERAL_NAMES* names) const noexcept { GENERAL_NAMES_free(names); }
};

}  // namespace

std::string OpenSslText() {
  const unsigned long code = ERR_get_error();
  ERR_clear_error();
  if (code == 0) return "no detail from OpenSSL";
  char text[256];
  ERR_error_string_n(code, text, sizeof text);
  return text;
}

KeyPtr ParseKey(const std::string& pem) {
  const BioPtr bio = Memory(pem);
  return KeyPtr(PEM_read_bio_PrivateKey(bio.get(), nullptr, NoPassPhrase, nullptr));
}

CertificatePtr ParseCertificate(const std::string& pem) {
  const BioPtr bio = Memory(pem);
  return CertificatePtr(PEM_read_bio_X509(bio.get(), nullptr, NoPassPhrase, nullptr));
}

std::string KeyPem(EVP_PKEY* key) {
  const BioPtr bio(BIO_new(BIO_s_mem()));
  if (PEM_write_bio_PrivateKey(bio.get(), key, nullptr, nullptr, 0, nullptr, nullptr) != 1) return {};
  return TextOf(bio.get());
}

std::string CertificatePem(X509* certificate) {
  const BioPtr bio(BIO_new(BIO_s_mem()));
  if (PEM_write_bio_X509(bio.get(), certificate) != 1) return {};
  return TextOf(bio.get());
}

std::string UriOf(X509* certificate) {
  const std::unique_ptr<GENERAL_NAMES, NamesDelete> names(
      static_cast<GENERAL_NAMES*>(X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr)));
  if (names == nullptr || sk_GENERAL_NAME_num(names.get()) != 1) return {};
  const GENERAL_NAME* name = sk_GENERAL_NAME_value(names.get(), 0);
  if (name->type != GEN_URI) return {};
  const ASN1_IA5STRING* uri = name->d.uniformResourceIdentifier;
  return {reinterpret_cast<const char*>(ASN1_STRING_get0_data(uri)),
          static_cast<std::size_t>(ASN1_STRING_length(uri))};
}

}  // namespace msa::tls
