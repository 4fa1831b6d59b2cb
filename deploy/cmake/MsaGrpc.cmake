# msa_grpc_static: gRPC, protobuf, abseil and OpenSSL as static archives. A client linked to Debian's 57 shared libraries
# spends 12 ms on relocations before main.
#
# How an executable that speaks gRPC should link:
#   * link msa_grpc (server, streams, conversions) or msa_proto (stubs alone); both bring msa_grpc_static. `ldd` then shows
#     neither grpc nor protobuf nor absl nor ssl.
#   * a program that people start, msactl, links msa_fast_start, too: no PIE, lazy binding. Of a process with one unary
#     call that takes 6.0 ms linked to shared OpenSSL and as PIE it leaves 4.4 ms. Daemons stay PIE: they start once.
# In a client that runs for milliseconds:
#   * grpc::CreateCustomInsecureChannelFromFd over a socket of msa::ConnectUnix spares the resolver, 0.7 ms, and an absent daemon is
#     known at once as an error of connect(2), without gRPC's back-off. Such a channel does not connect again: make a new one.
#   * call grpc_init() once and never shut down: the last channel's end would else take gRPC down, which now and then waits 10 s.
#   * SetMaxReceiveMessageSize(16 << 20), as the daemons have: a job with a large environment is more than gRPC's 4 MiB.
pkg_check_modules(GRPCPP_STATIC REQUIRED grpc++ protobuf)
add_library(msa_grpc_static INTERFACE)
file(GLOB msa_absl_archives ${Protobuf_LIBRARY_DIR}/libabsl_*.a ${GRPCPP_STATIC_LIBDIR}/libabsl_*.a
     /usr/lib/${CMAKE_LIBRARY_ARCHITECTURE}/libabsl_*.a)
list(REMOVE_DUPLICATES msa_absl_archives)
set(msa_grpc_archives)
foreach(name grpc++ grpc gpr protobuf address_sorting re2 upb cares z ssl crypto)
  find_library(MSA_STATIC_${name} NAMES lib${name}.a REQUIRED)
  list(APPEND msa_grpc_archives ${MSA_STATIC_${name}})
endforeach()
# Why: see the file.
add_library(msa_grpc_poll STATIC ${CMAKE_CURRENT_LIST_DIR}/../../daemon/adapters/grpc/src/grpc_poll.cc)
target_link_options(msa_grpc_static INTERFACE -Wl,--wrap=gpr_sleep_until)
target_link_libraries(msa_grpc_static INTERFACE
  -Wl,--start-group $<TARGET_FILE:msa_grpc_poll> ${msa_grpc_archives} ${msa_absl_archives} -Wl,--end-group
  msa_grpc_poll Threads::Threads dl rt)

add_library(msa_fast_start INTERFACE)
# The sanitizers want PIE.
if(NOT MSA_SANITIZE)
  target_link_options(msa_fast_start INTERFACE -no-pie -Wl,-z,lazy -Wl,--as-needed)
endif()
