# What CPack makes a Debian package of: `./dev package` runs it.
set(CPACK_GENERATOR DEB)
set(CPACK_STRIP_FILES ON)
set(CPACK_PACKAGE_CONTACT "The Troupe team")
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
# Libraries that are opened when a run asks for them.
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS "ocl-icd-libopencl1, libucx0")
set(CPACK_DEBIAN_PACKAGE_DESCRIPTION
"One topology file describes a run: the model, the data, the schedule and the
workers. Troupe runs it as actors that exchange messages, in one process or on
many machines. The trained bits do not depend on the number of workers.")
include(CPack)
