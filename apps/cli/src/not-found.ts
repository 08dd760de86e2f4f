import { Complaint } from "./complaint.ts";

/** The user named something that does not exist. */
export function notFound(what: string, look: string): Complaint {
  return new Complaint(`there is no ${what}`, {
    code: "not-found",
    advice: [`\`${look}\` lists what is there`],
  });
}

export function noBatch(id: string): Complaint {
  return new Complaint(`no job of a batch ${id} is known`, {
    code: "not-found",
    advice: [
      "the id is the one that `berth batch run` was given, or printed; its jobs are known for a day after their ends",
    ],
  });
}
