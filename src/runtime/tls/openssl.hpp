// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// OpenSSL's functions, opened at run time: a world without BEELINE_SECURE needs none of them.

#include <openssl/err.h>
#include <openssl/kdf.h>
#include <openssl/ssl.h>

namespace beeline::detail {

/// Every function of OpenSSL that Beeline calls.
#define BEELINE_OPENSSL_FUNCTIONS(each)                                                                               \
  each(BIO_clear_flags) each(BIO_get_data) each(BIO_meth_new) each(BIO_meth_set_ctrl) each(BIO_meth_set_read)         \
      each(BIO_meth_set_write) each(BIO_new) each(BIO_set_data) each(BIO_set_flags) each(BIO_set_init)                \
          each(ERR_clear_error) each(ERR_get_error) each(ERR_reason_error_string) each(EVP_KDF_CTX_free)              \
              each(EVP_KDF_CTX_new) each(EVP_KDF_derive) each(EVP_KDF_fetch) each(EVP_KDF_free) each(SSL_CIPHER_find) \
                  each(SSL_CTX_ctrl) each(SSL_CTX_new) each(SSL_CTX_set_ciphersuites) each(SSL_CTX_set_num_tickets)   \
                      each(SSL_CTX_set_psk_find_session_callback) each(SSL_CTX_set_psk_use_session_callback)          \
                          each(SSL_SESSION_free) each(SSL_SESSION_new) each(SSL_SESSION_set1_master_key)              \
                              each(SSL_SESSION_set_cipher) each(SSL_SESSION_set_protocol_version)                     \
                                  each(SSL_do_handshake) each(SSL_free) each(SSL_get_error) each(SSL_get_ex_data)     \
                                      each(SSL_is_init_finished) each(SSL_key_update) each(SSL_new) each(SSL_pending) \
                                          each(SSL_read) each(SSL_session_reused) each(SSL_set_accept_state)          \
                                              each(SSL_set_bio) each(SSL_set_connect_state) each(SSL_set_ex_data)     \
                                                  each(SSL_set_verify) each(SSL_write) each(TLS_method)

struct OpenSslFunctions {
#define BEELINE_OPENSSL_MEMBER(function) decltype(&::function) function;
  BEELINE_OPENSSL_FUNCTIONS(BEELINE_OPENSSL_MEMBER)
#undef BEELINE_OPENSSL_MEMBER
};

/// Opens OpenSSL, once in a process. Throws unavailable, with what to install.
[[nodiscard]] const OpenSslFunctions& openssl();

}  // namespace beeline::detail
