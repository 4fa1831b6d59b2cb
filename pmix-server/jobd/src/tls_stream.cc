#include "tls_stream.h"

#include <fcntl.h>
#include <string.h>

#include <cerrno>
#include <vector>

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/ssl.h>

namespace msa::jobd {
namespace {

struct CtxDelete {
  void operator()(SSL_CTX* ctx) const noexcept { SSL_CTX_free(ctx); }
};
struct SslDelete {
  void operator()(SSL* ssl) const noexcept { SSL_free(ssl); }
};
struct SessionDelete {
  void operator()(SSL_SESSION* session) const noexcept { SSL_SESSION_free(session); }
};

// TLS_AES_128_GCM_SHA256 (RFC 8446, B.4): every OpenSSL 3 has it, and its hash is the one a PSK defaults to.
constexpr unsigned char kCipherId[2] = {0x13, 0x01};

std::string OpenSslText() {
  const unsigned long code = ERR_peek_last_error();
  ERR_clear_error();
  if (code == 0) return "no detail from OpenSSL";
  char text[256];
  ERR_error_string_n(code, text, sizeof text);
  return text;
}

int HexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

class TlsStream final : public ByteStream {
 public:
  TlsStream(UniqueFd fd, std::unique_ptr<SSL, SslDelete> ssl) : fd_(std::move(fd)), ssl_(std::move(ssl)) {}

  int fd() const override { return fd_.get(); }

  IoResult Read(char* buffer, std::size_t size) override {
    std::size_t done = 0;
    ERR_clear_error();
    const int rc = SSL_read_ex(ssl_.get(), buffer, size, &done);
    return Outcome(rc, done);
  }

  IoResult Write(const char* data, std::size_t size) override {
    std::size_t done = 0;
    ERR_clear_error();
    const int rc = SSL_write_ex(ssl_.get(), data, size, &done);
    return Outcome(rc, done);
  }

  const char* Error() const override { return error_.c_str(); }

 private:
  IoResult Outcome(int rc, std::size_t done) {
    const int saved_errno = errno;
    if (rc > 0) {
      // A server without certificate can only have been authenticated by the key; checked once, so that no
      // future option of OpenSSL weakens it.
      if (!checked_ && SSL_is_init_finished(ssl_.get())) {
        checked_ = true;
        if (SSL_session_reused(ssl_.get()) != 1)
          return Fail("the peer did not prove that it knows the job's secret");
      }
      return {IoOutcome::kDone, done};
    }
    switch (SSL_get_error(ssl_.get(), rc)) {
      case SSL_ERROR_WANT_READ:
        return {IoOutcome::kWantRead, 0};
      case SSL_ERROR_WANT_WRITE:
        return {IoOutcome::kWantWrite, 0};
      case SSL_ERROR_ZERO_RETURN:
        return {IoOutcome::kClosed, 0};
      case SSL_ERROR_SYSCALL:
        if (saved_errno == 0 || saved_errno == EPIPE || saved_errno == ECONNRESET)
          return {IoOutcome::kClosed, 0};
        return Fail(ErrnoError(saved_errno, "socket").message());
      default:
        // A peer that died sends no close_notify; that is its end, not a fault of the stream.
        if (ERR_GET_REASON(ERR_peek_last_error()) == SSL_R_UNEXPECTED_EOF_WHILE_READING) {
          ERR_clear_error();
          return {IoOutcome::kClosed, 0};
        }
        if (SSL_is_init_finished(ssl_.get()) == 0)
          return Fail("TLS handshake failed, the job's secret does not match: " + OpenSslText());
        return Fail("TLS: " + OpenSslText());
    }
  }

  IoResult Fail(std::string why) {
    error_ = std::move(why);
    return {IoOutcome::kError, 0};
  }

  UniqueFd fd_;  // closed after the SSL object is gone: declared before it
  std::unique_ptr<SSL, SslDelete> ssl_;
  bool checked_ = false;
  std::string error_;
};

}  // namespace

struct TlsContext::Impl {
  std::unique_ptr<SSL_CTX, CtxDelete> ctx;
  std::string identity;
  std::vector<unsigned char> key;

  static Impl& Of(SSL* ssl) { return *static_cast<Impl*>(SSL_CTX_get_app_data(SSL_get_SSL_CTX(ssl))); }

  // A session that stands for the key (SSL_CTX_set_psk_use_session_callback(3)); null if out of memory or
  // unset.
  SSL_SESSION* NewSession(SSL* ssl) const {
    if (key.empty()) return nullptr;
    std::unique_ptr<SSL_SESSION, SessionDelete> session(SSL_SESSION_new());
    const SSL_CIPHER* cipher = SSL_CIPHER_find(ssl, kCipherId);
    if (session == nullptr || cipher == nullptr ||
        SSL_SESSION_set1_master_key(session.get(), key.data(), key.size()) != 1 ||
        SSL_SESSION_set_cipher(session.get(), cipher) != 1 ||
        SSL_SESSION_set_protocol_version(session.get(), TLS1_3_VERSION) != 1)
      return nullptr;
    return session.release();
  }

  static int UseSession(SSL* ssl, const EVP_MD*, const unsigned char** id, std::size_t* id_size,
                        SSL_SESSION** session) noexcept {
    const Impl& self = Of(ssl);
    *session = self.NewSession(ssl);
    if (*session == nullptr) return 0;
    *id = reinterpret_cast<const unsigned char*>(self.identity.data());
    *id_size = self.identity.size();
    return 1;
  }

  // An unknown identity leaves *session null: the handshake then needs a certificate, has none, and fails.
  static int FindSession(SSL* ssl, const unsigned char* id, std::size_t id_size,
                         SSL_SESSION** session) noexcept {
    const Impl& self = Of(ssl);
    *session = nullptr;
    if (id_size != self.identity.size() || memcmp(id, self.identity.data(), id_size) != 0) return 1;
    *session = self.NewSession(ssl);
    return *session != nullptr ? 1 : 0;
  }

  Status Open() {
    if (ctx != nullptr) return Status::Ok();
    std::unique_ptr<SSL_CTX, CtxDelete> made(SSL_CTX_new(TLS_method()));
    if (made == nullptr || SSL_CTX_set_min_proto_version(made.get(), TLS1_3_VERSION) != 1 ||
        SSL_CTX_set_ciphersuites(made.get(), "TLS_AES_128_GCM_SHA256") != 1 ||
        SSL_CTX_set_num_tickets(made.get(), 0) != 1)
      return Error(Code::kInternal, "cannot set up TLS 1.3: {}", OpenSslText());
    SSL_CTX_set_app_data(made.get(), this);
    SSL_CTX_set_mode(made.get(), SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                                     SSL_MODE_RELEASE_BUFFERS);
    SSL_CTX_set_session_cache_mode(made.get(), SSL_SESS_CACHE_OFF);
    SSL_CTX_set_psk_use_session_callback(made.get(), UseSession);
    SSL_CTX_set_psk_find_session_callback(made.get(), FindSession);
    ctx = std::move(made);
    return Status::Ok();
  }

  Result<std::unique_ptr<ByteStream>> Make(UniqueFd fd, void (*set_role)(SSL*)) {
    MSA_RETURN_IF_ERROR(Open());
    ::fcntl(fd.get(), F_SETFL, ::fcntl(fd.get(), F_GETFL) | O_NONBLOCK);
    std::unique_ptr<SSL, SslDelete> ssl(SSL_new(ctx.get()));
    if (ssl == nullptr || SSL_set_fd(ssl.get(), fd.get()) != 1)
      return Error(Code::kInternal, "cannot make a TLS stream: {}", OpenSslText());
    set_role(ssl.get());
    return std::unique_ptr<ByteStream>(std::make_unique<TlsStream>(std::move(fd), std::move(ssl)));
  }

  // A handshake with itself in memory: OpenSSL looks its algorithms up at the first use of each.
  void Rehearse() {
    key.assign(32, 0);
    identity = "rehearsal";
    std::unique_ptr<SSL, SslDelete> client(SSL_new(ctx.get()));
    std::unique_ptr<SSL, SslDelete> server(SSL_new(ctx.get()));
    BIO* near = nullptr;
    BIO* far = nullptr;
    if (client != nullptr && server != nullptr && BIO_new_bio_pair(&near, 0, &far, 0) == 1) {
      SSL_set_bio(client.get(), near, near);
      SSL_set_bio(server.get(), far, far);
      SSL_set_connect_state(client.get());
      SSL_set_accept_state(server.get());
      // Its hello; its hello and finished; finished. What goes wrong here goes wrong, and is said, there.
      for (int flight = 0; flight < 2; ++flight) {
        SSL_do_handshake(client.get());
        SSL_do_handshake(server.get());
      }
    }
    ERR_clear_error();
    key.clear();
    identity.clear();
  }
};

TlsContext::TlsContext() : impl_(std::make_unique<Impl>()) {}
TlsContext::~TlsContext() = default;

Status TlsContext::Warm() {
  MSA_RETURN_IF_ERROR(impl_->Open());
  if (impl_->key.empty()) impl_->Rehearse();
  return Status::Ok();
}

Status TlsContext::SetSecret(std::string identity, const std::string& secret_hex) {
  std::vector<unsigned char> key;
  bool good = secret_hex.size() == 64;
  for (std::size_t i = 0; good && i + 1 < secret_hex.size(); i += 2) {
    const int high = HexDigit(secret_hex[i]);
    const int low = HexDigit(secret_hex[i + 1]);
    good = high >= 0 && low >= 0;
    key.push_back(static_cast<unsigned char>(high << 4 | low));
  }
  if (!good)
    return Error(Code::kInvalidArgument, "the job's secret has {} characters; expected 64 hex digits",
                 secret_hex.size());
  impl_->identity = std::move(identity);
  impl_->key = std::move(key);
  return Status::Ok();
}

Result<std::unique_ptr<ByteStream>> TlsContext::Client(UniqueFd fd) {
  return impl_->Make(std::move(fd), [](SSL* ssl) {
    SSL_set_verify(ssl, SSL_VERIFY_PEER, nullptr);  // a certificate is never accepted: there are no roots
    SSL_set_connect_state(ssl);
  });
}

Result<std::unique_ptr<ByteStream>> TlsContext::Server(UniqueFd fd) {
  return impl_->Make(std::move(fd), [](SSL* ssl) { SSL_set_accept_state(ssl); });
}

}  // namespace msa::jobd
