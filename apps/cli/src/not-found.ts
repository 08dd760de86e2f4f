import { Complaint } from "./complaint.ts";

/** Something was named that is not there. */
export function notFound(what: string, look: string): Complaint {
  return new Complaint(`there is no ${what}`, {
    code: "not-found",
    advice: [`\`${look}\` lists what is there`],
  });
}
