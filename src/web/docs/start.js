// Shows this service's own description. `validatorUrl: null`: nothing is sent to the validator of swagger.io. A key that
// is typed into "Authorize" is kept by this page only, until it is closed.
SwaggerUIBundle({
  url: "/openapi.json",
  dom_id: "#api",
  deepLinking: true,
  defaultModelsExpandDepth: 0,
  displayRequestDuration: true,
  validatorUrl: null,
});
