// The main function of every Boost.Test executable here; the framework is linked statically and brings the rest.
#define BOOST_TEST_MODULE fulcrum
#include <boost/test/unit_test.hpp>
