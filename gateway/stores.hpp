// Opens what the gateway keeps on disk or in Redis, as the configuration says.
#pragma once

#include "gateway/cli/cli.hpp"
#include "gateway/gateway.hpp"

namespace fixpoint {

// Keys first: whoever has them owns the data folder. A store that cannot be opened is an error at
// start-up (it is logged, and false returned): a gateway that silently does not cache is not what
// was configured.
bool open_stores(Gateway& gateway, const ServeArguments& arguments);

}  // namespace fixpoint
