# Third-party libraries, all Debian 12 packages; README.md says why each one is here.
find_package(Threads REQUIRED)
find_package(OpenSSL 3 REQUIRED)
find_package(SQLite3 REQUIRED)
find_package(nlohmann_json 3.11 REQUIRED)
find_package(Boost 1.81 REQUIRED)
find_package(tl-expected REQUIRED)
find_package(yaml-cpp REQUIRED)
find_package(CLI11 REQUIRED)

find_package(PkgConfig REQUIRED)
pkg_check_modules(PCRE2 REQUIRED IMPORTED_TARGET libpcre2-8)
pkg_check_modules(UTF8PROC REQUIRED IMPORTED_TARGET libutf8proc)
pkg_check_modules(HWY REQUIRED IMPORTED_TARGET libhwy)
pkg_check_modules(ZSTD REQUIRED IMPORTED_TARGET libzstd)
pkg_check_modules(HIREDIS REQUIRED IMPORTED_TARGET hiredis)

# Asio and Beast, header-only. Separate from Boost's own target so that the definitions below
# reach every user: no deprecated interfaces, and one concrete executor keeps compile time down.
add_library(fixpoint_asio INTERFACE)
target_link_libraries(fixpoint_asio INTERFACE Boost::headers OpenSSL::SSL OpenSSL::Crypto Threads::Threads)
target_compile_definitions(fixpoint_asio INTERFACE BOOST_ASIO_NO_DEPRECATED)
