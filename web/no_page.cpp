#include "telemetry/page/page_asset.h"

namespace troupe::telemetry {

std::span<const PageAsset> page_assets() { return {}; }

}  // namespace troupe::telemetry
