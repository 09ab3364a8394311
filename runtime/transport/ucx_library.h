#pragma once

// libucp, opened when a run asks for it. Linked, it would set itself up in every process: its
// libraries read the environment and take over signals before main() begins. The only file that
// sees its headers.

#include <ucp/api/ucp.h>

#include "runtime/base/error.h"

namespace troupe::runtime {

#define TROUPE_UCX_FUNCTIONS(DO)     \
  DO(ucp_init_version)               \
  DO(ucp_cleanup)                    \
  DO(ucp_config_read)                \
  DO(ucp_config_modify)              \
  DO(ucp_config_release)             \
  DO(ucp_get_version)                \
  DO(ucp_worker_create)              \
  DO(ucp_worker_destroy)             \
  DO(ucp_worker_get_address)         \
  DO(ucp_worker_release_address)     \
  DO(ucp_worker_get_efd)             \
  DO(ucp_worker_arm)                 \
  DO(ucp_worker_progress)            \
  DO(ucp_worker_set_am_recv_handler) \
  DO(ucp_ep_create)                  \
  DO(ucp_ep_close_nbx)               \
  DO(ucp_ep_flush_nbx)               \
  DO(ucp_am_send_nbx)                \
  DO(ucp_am_recv_data_nbx)           \
  DO(ucp_request_check_status)       \
  DO(ucp_request_free)               \
  DO(ucs_status_string)

struct UcxLibrary {
#define TROUPE_DECLARE(function) decltype(&::function) function = nullptr;
  TROUPE_UCX_FUNCTIONS(TROUPE_DECLARE)
#undef TROUPE_DECLARE
};

// Opened at the first call, once. Errors (kUsage): it is not installed, or lacks a function.
Result<const UcxLibrary*> ucx_library();

}  // namespace troupe::runtime
