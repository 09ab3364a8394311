# Everything found on the system; each package's purpose stands in docs/architecture.md.
find_package(Threads REQUIRED)
find_package(PkgConfig REQUIRED)
find_package(fmt REQUIRED)
find_package(spdlog REQUIRED)
find_package(HDF5 REQUIRED COMPONENTS C)
find_package(yaml-cpp REQUIRED)
find_package(nlohmann_json REQUIRED)
# oneDNN by hand: Debian's package configuration demands the OpenCL development files, and nothing
# here uses them.
find_path(TROUPE_DNNL_INCLUDE dnnl.hpp REQUIRED)
find_library(TROUPE_DNNL_LIBRARY dnnl REQUIRED)
add_library(DNNL::dnnl UNKNOWN IMPORTED)
set_target_properties(DNNL::dnnl PROPERTIES
  IMPORTED_LOCATION ${TROUPE_DNNL_LIBRARY} INTERFACE_INCLUDE_DIRECTORIES ${TROUPE_DNNL_INCLUDE})
find_package(Eigen3 REQUIRED NO_MODULE)
pkg_check_modules(hwy REQUIRED IMPORTED_TARGET libhwy)
# Only to tell oneDNN's runtime to keep to the calling thread.
find_package(OpenMP REQUIRED COMPONENTS CXX)
pkg_check_modules(xxhash REQUIRED IMPORTED_TARGET libxxhash)
# Header only; its package configuration asks for parts of Boost that this use of it does without.
find_path(TROUPE_MSGPACK_INCLUDE msgpack.hpp REQUIRED)
add_library(msgpack INTERFACE IMPORTED)
target_include_directories(msgpack INTERFACE ${TROUPE_MSGPACK_INCLUDE})
target_compile_definitions(msgpack INTERFACE MSGPACK_NO_BOOST)
pkg_check_modules(zmq REQUIRED IMPORTED_TARGET libzmq)
find_path(TROUPE_CPPZMQ_INCLUDE zmq.hpp REQUIRED)
# Headers alone: the library is opened when a run asks for it.
find_path(TROUPE_UCX_INCLUDE ucp/api/ucp.h REQUIRED)
pkg_check_modules(deflate REQUIRED IMPORTED_TARGET libdeflate)
# The messages of ONNX files. By hand: the package's configuration asks for the compiler of protobuf.
pkg_check_modules(protobuf REQUIRED IMPORTED_TARGET protobuf)
find_path(TROUPE_ONNX_INCLUDE onnx/onnx-ml.pb.h REQUIRED)
find_library(TROUPE_ONNX_PROTO_LIBRARY onnx_proto REQUIRED)
add_library(onnx UNKNOWN IMPORTED)
set_target_properties(onnx PROPERTIES IMPORTED_LOCATION ${TROUPE_ONNX_PROTO_LIBRARY}
  INTERFACE_INCLUDE_DIRECTORIES ${TROUPE_ONNX_INCLUDE}
  INTERFACE_LINK_LIBRARIES PkgConfig::protobuf
  INTERFACE_COMPILE_DEFINITIONS "ONNX_NAMESPACE=onnx;ONNX_ML=1")
pkg_check_modules(zlib REQUIRED IMPORTED_TARGET zlib)
pkg_check_modules(pugixml REQUIRED IMPORTED_TARGET pugixml)
pkg_check_modules(sqlite REQUIRED IMPORTED_TARGET sqlite3)
pkg_check_modules(curl REQUIRED IMPORTED_TARGET libcurl)
pkg_check_modules(crypto REQUIRED IMPORTED_TARGET libcrypto)
pkg_check_modules(zip REQUIRED IMPORTED_TARGET libzip)
if(TROUPE_BUILD_TESTS)
  # The library that checks them.
  find_library(TROUPE_ONNX_LIBRARY onnx REQUIRED)
  find_package(GTest REQUIRED)
  include(GoogleTest)
endif()
if(TROUPE_BUILD_BENCHES)
  find_package(benchmark REQUIRED)
endif()
