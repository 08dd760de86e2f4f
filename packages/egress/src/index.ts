export { Allowance, type EgressCeilings } from "./allowance.ts";
export { type Download, download } from "./download.ts";
export { EgressDenied, EgressGate, type EgressGateOptions } from "./gate.ts";
export { EgressMeter, type EgressReport } from "./meter.ts";
export { EgressProxy } from "./proxy.ts";
export {
  AddressRefused,
  allowedNetworks,
  isPublicAddress,
  type PinnedAddress,
  pinnedAddress,
  pinnedAddresses,
  type Resolver,
  systemResolver,
} from "./public-address.ts";
export { BadTarget } from "./target.ts";
